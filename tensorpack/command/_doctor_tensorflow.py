"""What `tensorpack doctor` asks of TensorFlow, GPUs and a training, in a process of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from ._doctor_checks import OK, PROBLEM, WARNING, Finding

_IMPORT_SECONDS = 240.0  # on a slow network disk
_DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia/version")
_NO_GPU = re.compile(
    "Could not load dynamic library|Cannot dlopen|failed call to cuInit|CUDA_ERROR"
)
_LOST = 0.9  # of the first cost: one that has not fallen below has learnt nothing


class Probed(NamedTuple):
    """What the process printed: objects in lines, and the text of its standard error."""

    found: List[Dict[str, Any]]
    code: Optional[int]  # None if it was killed after the time limit
    errors: str


def check_tensorflow(seconds: float) -> Iterator[Finding]:
    """Imports TensorFlow, looks for GPUs, and trains for some seconds; 0 for not at all."""
    probed = probe("_probe", [str(seconds)], _IMPORT_SECONDS + 10 * seconds)
    if not probed.found:
        yield Finding(PROBLEM, "TensorFlow", f"cannot be imported: {why(probed)}", _ADVICE)
        return
    facts = probed.found[0]
    kind = "for CUDA" if facts["cuda"] else "for CPUs"
    text = f"{facts['version']}, built {kind}, imported in {facts['import_seconds']:.1f} s"
    yield Finding(OK, "TensorFlow", text)
    has_driver = any(map(os.path.exists, _DRIVER_FILES))
    yield check_gpus(facts, has_driver, os.environ.get("CUDA_VISIBLE_DEVICES"), probed.errors)
    if seconds:
        yield check_training(probed)


_ADVICE = "python -c 'import tensorflow' shows all; a fresh virtual environment is often the answer"


def check_gpus(
    facts: Dict[str, Any], has_driver: bool, visible: Optional[str], errors: str
) -> Finding:
    """Tells how many GPUs TensorFlow sees, or why it sees none.

    Args:
      facts: of `_probe.describe_tensorflow`.
      has_driver: whether the driver of NVIDIA is there.
      visible: the variable CUDA_VISIBLE_DEVICES.
      errors: what TensorFlow wrote to standard error.
    """
    if facts["gpus"]:
        count = len(facts["gpus"])
        return Finding(OK, "GPU", f"TensorFlow sees {count}: {', '.join(facts['gpus'])}")
    if not has_driver:
        text = "none: this machine has no driver of NVIDIA; training runs on the CPU"
        return Finding(OK, "GPU", text)
    if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
        text = f"none: CUDA_VISIBLE_DEVICES={visible} hides them"
        return Finding(WARNING, "GPU", text, "unset CUDA_VISIBLE_DEVICES")
    if not facts["cuda"]:
        text = "none: there is a driver, but this TensorFlow is built for CPUs"
        advice = "pip uninstall -y tensorflow-cpu; pip install 'tensorflow[and-cuda]'"
        return Finding(WARNING, "GPU", text, advice)
    reasons = [line for line in errors.splitlines() if _NO_GPU.search(line)] or [
        "TensorFlow gives no reason"
    ]
    reason = reasons[0].partition("] ")[2] or reasons[0]
    advice = (
        "pip install 'tensorflow[and-cuda]'; does nvidia-smi work, and is its driver new enough?"
    )
    return Finding(WARNING, "GPU", f"none, though there is a driver: {reason[:200]}", advice)


def check_training(probed: Probed) -> Finding:
    """Tells how the training went."""
    if len(probed.found) < 2 or probed.code != 0:
        text = f"failed: {why(probed)}"
        return Finding(PROBLEM, "training", text, "python -m tensorpack.command._probe 5 shows all")
    result = probed.found[1]
    first, last = result["first"], result["last"]
    speed = result["steps"] / result["seconds"]
    text = (
        f"{result['steps']} steps through a queue in {result['seconds']:.1f} s ({speed:.0f} a "
        f"second); cost from {first:.3g} to {last:.3g}"
    )
    if not last < _LOST * first:
        advice = "Does this TensorFlow fit this machine? Try another version"
        return Finding(PROBLEM, "training", f"does not learn: {text}", advice)
    return Finding(OK, "training", text)


def probe(module: str, arguments: Sequence[str], seconds: float) -> Probed:
    """Runs a module of this package, for so many seconds at most."""
    # What a program writes to a pipe that nobody reads holds it up: both go to files.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", f"tensorpack.command.{module}", *arguments]
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
        code: Optional[int] = None
        with suppress(subprocess.TimeoutExpired):
            code = subprocess.run(command, timeout=seconds, **streams).returncode
        output.seek(0)
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace")
        return Probed(_objects(output.read().decode("utf-8", "replace")), code, text)


def _objects(text: str) -> List[Dict[str, Any]]:
    found = []
    for line in text.splitlines():
        with suppress(ValueError):
            value = json.loads(line)
            found += [value] if isinstance(value, dict) else []
    return found


def why(probed: Probed) -> str:
    """Returns in a line how a process failed."""
    if probed.code is None:
        return "it did not end in time and was killed"
    lines = [line.strip() for line in probed.errors.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else "it wrote no error"
    if probed.code < 0:
        name = signal.Signals(-probed.code).name
        reason = f"it was killed by {name}"
        if name == "SIGILL":
            return f"{reason}: this CPU lacks instructions (AVX) that TensorFlow was built with"
        if name == "SIGKILL":
            return f"{reason}, perhaps for lack of memory"
        return f"{reason}; {last}"
    return last
