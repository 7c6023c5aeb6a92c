"""`tensorpack doctor`: tells in a line each what works here, what does not, and the next move."""

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from tensorpack._version import __version__
from tensorpack.utils._words import size_text
from tensorpack.utils.optional import TENSORFLOW, TENSORFLOW_GPU

from ._common import FINE, PROBLEM, json_text, printable

HELP = "check this machine: packages, TensorFlow, GPUs, memory, folders"
_IMPORT_SECONDS = 240.0  # on a slow network disk
_REQUIRED = ("msgpack", "numpy", "tabulate", "tqdm")
_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "intel-tensorflow")
_INSTALLED = re.compile(r"(.+?)-(\d[^-]*)(?:-py.*)?\.(?:dist-info|egg-info)")
_NO_GPU = re.compile("Could not load dynamic library|Cannot dlopen|cuInit|CUDA_ERROR")


class _Finding(NamedTuple):
    """One line of the report: "ok", "warning" or "problem"; of what; what was found; what to do."""

    level: str
    topic: str
    text: str
    advice: str = ""


def _found(topic: str, text: str, advice: str = "", level: str = "warning") -> _Finding:
    return _Finding(level if advice else "ok", topic, text, advice)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Checks what a training needs, one line each: ok, warning or problem, and the next move. "
        "Exit code 1 if there is a problem."
    )
    text = "where runs are to write (%(default)s); nothing is left there"
    parser.add_argument("--logdir", default="train_log", metavar="DIR", help=text)
    parser.add_argument("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    found: List[_Finding] = []
    for each in _findings(args.logdir):
        found.append(each)
        if not args.json:
            advice = f". {each.advice}" if each.advice else ""
            args.write(printable(f"{each.level:8} {each.topic:14} {each.text}{advice}"))
    levels = [each.level for each in found]
    problems, warnings = levels.count("problem"), levels.count("warning")
    if args.json:
        facts = {"problems": problems, "warnings": warnings}
        args.write(json_text({**facts, "findings": [each._asdict() for each in found]}))
    else:
        args.write(f"\n{problems} problems, {warnings} warnings.")
    return PROBLEM if problems else FINE


def _findings(logdir: str) -> Iterator[_Finding]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield _found("tensorpack", f"{__version__} ({package})")
    packages = _installed_packages(sys.path)
    yield from _check_packages(sys.version_info[:2], packages)
    if os.environ.get("TF_CONFIG"):  # left by a launcher
        text = "TF_CONFIG makes every training a part of a group, and wait for the others"
        yield _found("environment", text, "unset TF_CONFIG, unless this is meant")
    yield from _check_machine()
    yield _check_folder("log folder", logdir)
    data = os.environ.get("TENSORPACK_DATASET") or os.path.expanduser("~/tensorpack_data")
    yield _check_folder("data folder", data)._replace(advice="")
    if "ale-py" in packages:
        from tensorpack.RL.rom import installed_roms

        roms = installed_roms()
        advice = "" if roms else "pip install 'ale-py>=0.9' has all games"
        yield _found("Atari", f"ale-py {packages['ale-py']}, {len(roms)} games", advice)
    if importlib.util.find_spec("tensorflow") is not None:
        yield from _check_tensorflow()


def _installed_packages(folders: List[str]) -> Dict[str, str]:
    """Returns the packages whose metadata are in folders such as those of `sys.path`."""
    found: Dict[str, str] = {}
    for folder in folders:
        with suppress(OSError):
            for match in filter(None, map(_INSTALLED.fullmatch, sorted(os.listdir(folder or ".")))):
                package = re.sub(r"[-_.]+", "-", match.group(1)).lower()
                found.setdefault(package, match.group(2))
    return found


def _check_packages(python: Tuple[int, ...], packages: Mapping[str, str]) -> Iterator[_Finding]:
    """Looks at Python, at what the library requires, and at which TensorFlow there is."""
    tested = (3, 10) <= python <= (3, 13) or python == (3, 7)
    text = f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"
    advice = "" if tested else "Tested are 3.10 to 3.13, and 3.7 for TensorFlow 1.15."
    yield _found("Python", text, advice)
    missing = [name for name in _REQUIRED if name not in packages]
    text = ", ".join(f"{name} {packages.get(name, 'is not installed')}" for name in _REQUIRED)
    advice = f"pip install {' '.join(missing)}" if missing else ""
    yield _found("packages", text, advice, "problem")
    found = [name for name in _TENSORFLOWS if name in packages]
    if not found:
        text = "not installed; tensorpack.dataflow, tensorpack.RL and this program work without it"
        advice = f"To train: pip install {TENSORFLOW}, or for a GPU: {TENSORFLOW_GPU}"
        yield _found("TensorFlow", text, advice)
    elif len(found) > 1:
        text = f"{' and '.join(found)} are both installed, and overwrite each other's files"
        advice = f"pip uninstall -y {' '.join(found)}, then install one of them"
        yield _found("TensorFlow", text, advice, "problem")


def _check_machine(root: str = "/") -> Iterator[_Finding]:
    """Looks at cores and memory; `/proc` and `/sys` are in `root`."""
    from tensorpack.utils.memory import available_bytes
    from tensorpack.utils.workers.processes import usable_cores

    yield _found("cores", str(usable_cores()))
    free = available_bytes(root)
    if free is not None:
        advice = "End other programs, or make replay memories smaller" if free < 4e9 else ""
        level = "problem" if free < 0.5e9 else "warning"
        yield _found("memory", f"{size_text(free)} are free", advice, level)
    shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    advice = "" if shared >= 256e6 else "Processes share batches there. With docker: --shm-size=2g"
    yield _found("shared memory", f"{size_text(shared)} are free in /dev/shm", advice)


def _check_folder(topic: str, path: str) -> _Finding:
    """Looks whether a folder can be written to, or made."""
    try:
        existing = os.path.abspath(path)
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".tensorpack-doctor-"):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        text, advice = f"{path} cannot be written to: {error.strerror}", "Choose another folder"
        return _found(topic, text, advice, "problem" if topic == "log folder" else "warning")
    advice = "Make room: a run keeps 10 checkpoints by default" if free < 1e9 else ""
    return _found(topic, f"{path} can be written to; {size_text(free)} are free", advice)


def _check_tensorflow() -> Iterator[_Finding]:
    """Imports TensorFlow in a process of its own, which may crash, and looks for GPUs."""
    try:
        command = [sys.executable, "-m", __name__]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_IMPORT_SECONDS
        )
        errors = done.stderr.decode("utf-8", "replace")
        failure = _why(done.returncode, errors)
    except subprocess.TimeoutExpired:
        failure = "it did not end in time and was killed"
    if failure:
        advice = "python -c 'import tensorflow' shows all; try a fresh virtual environment"
        yield _found("TensorFlow", f"cannot be imported: {failure}", advice, "problem")
        return
    facts = json.loads(done.stdout.splitlines()[-1])
    kind = "for CUDA" if facts["cuda"] else "for CPUs"
    text = f"{facts['version']}, built {kind}, imported in {facts['import_seconds']:.1f} s"
    yield _found("TensorFlow", text)
    yield _check_gpus(facts, os.environ.get("CUDA_VISIBLE_DEVICES"), errors)


def _check_gpus(facts: Mapping[str, Any], visible: Optional[str], errors: str) -> _Finding:
    """Tells how many GPUs TensorFlow sees, or by what it wrote (`errors`) why it sees none."""
    if facts["gpus"]:
        return _found("GPU", f"TensorFlow sees {len(facts['gpus'])}: {', '.join(facts['gpus'])}")
    if not facts["driver"]:
        return _found("GPU", "none: this machine has no driver of NVIDIA; training runs on the CPU")
    if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
        text, advice = f"CUDA_VISIBLE_DEVICES={visible} hides them", "unset CUDA_VISIBLE_DEVICES"
    elif not facts["cuda"]:
        text = "there is a driver, but this TensorFlow is built for CPUs"
        advice = f"pip uninstall -y tensorflow-cpu; pip install {TENSORFLOW_GPU}"
    else:
        reasons = [line for line in errors.splitlines() if _NO_GPU.search(line)]
        text = f"there is a driver, and {(reasons or ['no reason is given'])[0][-200:]}"
        advice = f"pip install {TENSORFLOW_GPU}; does nvidia-smi work?"
    return _found("GPU", f"none: {text}", advice)


def _why(code: int, errors: str) -> str:
    """Returns in a line how a process failed, "" if it did not."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()] or ["it wrote no error"]
    if code >= 0:
        return lines[-1][:300] if code else ""
    known = {
        signal.SIGILL: "this CPU lacks instructions (AVX) that TensorFlow was built with",
        signal.SIGKILL: "perhaps for lack of memory",
    }
    signum = signal.Signals(-code)
    return f"it was killed by {signum.name}: {known.get(signum, lines[-1][:300])}"


def _describe_tensorflow() -> Dict[str, Any]:
    """Returns the version, whether it is built for CUDA, and the GPUs that it can use."""
    from tensorpack.utils.nvml import has_driver

    begin = time.monotonic()
    from tensorpack.compat import tfv1 as tf

    return {
        "version": tf.__version__,
        "import_seconds": time.monotonic() - begin,
        "cuda": bool(tf.test.is_built_with_cuda()),
        "driver": has_driver(),
        "gpus": [each.name for each in tf.config.experimental.list_physical_devices("GPU")],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_describe_tensorflow()) + "\n")
