"""`tensorpack doctor`: tells in a line each what works here, what does not, and the next move."""

import argparse
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from tensorpack._version import __version__
from tensorpack.utils._sizes import size_text

from ._common import FINE, PROBLEM, json_text, number, printable

HELP = "check this machine: packages, TensorFlow, GPUs, memory, folders, a short training"
_IMPORT_SECONDS = 240.0  # on a slow network disk
_REQUIRED = ("msgpack", "numpy", "tabulate", "tqdm")
_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "intel-tensorflow")
_INSTALLED = re.compile(r"(.+?)-(\d[^-]*)(?:-py.*)?\.(?:dist-info|egg-info)")
_NO_GPU = re.compile("Could not load dynamic library|Cannot dlopen|cuInit|CUDA_ERROR")
_ODD_VARIABLES = {  # name -> its odd values, and what they do
    "TF_ENABLE_ONEDNN_OPTS": ("0", "turns oneDNN off: a CPU computes more slowly"),
    "TF_CPP_MIN_LOG_LEVEL": ("[3-9].*", "hides TensorFlow's errors"),
    "OMP_NUM_THREADS": ("1", "lets one thread compute"),
    "TF_CONFIG": ("(?s).+", "makes every training a part of a group, and wait for the others"),
    "PYTHONOPTIMIZE": ("(?s).+", "turns assertions off"),
}


class _Finding(NamedTuple):
    """One line of the report: "ok", "warning" or "problem"; of what; what was found; what to do."""

    level: str
    topic: str
    text: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Checks what a training needs, one line each: ok, warning or problem, and the next move. "
        "Exit code 1 if there is a problem."
    )
    add = parser.add_argument
    text = "where runs are to write (%(default)s); nothing is left there"
    add("--logdir", default="train_log", metavar="DIR", help=text)
    seconds = number("of seconds above 0", lambda value: 0 < value <= 3600)
    add("--seconds", type=seconds, default=5.0, metavar="S", help="of training (%(default)g)")
    add("--no-training", action="store_true", help="do not train, only import TensorFlow")
    add("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    """Prints the findings as they are made; returns the exit code."""
    found: List[_Finding] = []
    for each in _findings(args):
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


def _findings(args: Any) -> Iterator[_Finding]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield _Finding("ok", "tensorpack", f"{__version__} ({package})")
    packages = _installed_packages(sys.path)
    yield from _check_packages(sys.version_info[:2], packages)
    for name, (odd, effect) in _ODD_VARIABLES.items():
        if re.fullmatch(odd, os.environ.get(name, "")):
            text = f"{name}={os.environ[name]} {effect}"
            yield _Finding("warning", "environment", text, "unset it, unless this is meant")
    yield from _check_machine()
    yield _check_folder("log folder", args.logdir)
    data = os.environ.get("TENSORPACK_DATASET") or os.path.expanduser("~/tensorpack_data")
    yield _check_folder("data folder", data)._replace(advice="")
    if "ale-py" in packages:
        yield _check_games(packages["ale-py"])
    if importlib.util.find_spec("tensorflow") is not None:
        yield from _check_tensorflow(0.0 if args.no_training else args.seconds)


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
    yield _Finding("ok" if tested else "warning", "Python", text, advice)
    missing = [name for name in _REQUIRED if name not in packages]
    if missing:
        text = f"not installed: {', '.join(missing)}"
        yield _Finding("problem", "packages", text, f"pip install {' '.join(missing)}")
    else:
        yield _Finding(
            "ok", "packages", ", ".join(f"{name} {packages[name]}" for name in _REQUIRED)
        )
    found = [name for name in _TENSORFLOWS if name in packages]
    if not found:
        text = "not installed; tensorpack.dataflow, tensorpack.RL and this program work without it"
        advice = "To train: pip install tensorflow-cpu, or for a GPU: 'tensorflow[and-cuda]'"
        yield _Finding("warning", "TensorFlow", text, advice)
    elif len(found) > 1:
        text = f"{' and '.join(found)} are both installed, and overwrite each other's files"
        advice = f"pip uninstall -y {' '.join(found)}, then install one of them"
        yield _Finding("problem", "TensorFlow", text, advice)


def _check_machine(root: str = "/") -> Iterator[_Finding]:
    """Looks at cores, memory and file descriptors; `/proc` and `/sys` are in `root`."""
    from tensorpack.utils.memory import available_bytes
    from tensorpack.utils.processes import usable_cores

    yield _Finding("ok", "cores", str(usable_cores()))
    free = available_bytes(root)
    if free is not None:
        level = "problem" if free < 0.5e9 else "warning" if free < 4e9 else "ok"
        advice = "" if level == "ok" else "End other programs, or make replay memories smaller"
        yield _Finding(level, "memory", f"{size_text(free)} are free", advice)
    shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    advice = "" if shared >= 256e6 else "Processes share batches there. With docker: --shm-size=2g"
    text = f"{size_text(shared)} are free in /dev/shm"
    yield _Finding("warning" if advice else "ok", "shared memory", text, advice)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < 1024:
        yield _Finding("warning", "open files", f"at most {files} at a time", "ulimit -n 4096")


def _check_folder(topic: str, path: str) -> _Finding:
    """Looks whether a folder can be written to, or made."""
    existing = os.path.abspath(path)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".tensorpack-doctor-"):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        text, advice = f"{path} cannot be written to: {error.strerror}", "Choose another folder"
        return _Finding("problem" if topic == "log folder" else "warning", topic, text, advice)
    text = f"{path} can be written to; {size_text(free)} are free"
    if free < 1e9:
        advice = "Make room: a run keeps 10 checkpoints by default"
        return _Finding("warning", topic, text, advice)
    return _Finding("ok", topic, text)


def _check_games(version: str) -> _Finding:
    from tensorpack.RL.rom import installed_roms

    roms = installed_roms()
    advice = "" if roms else "pip install 'ale-py>=0.9' has all games"
    text = f"ale-py {version}, {len(roms)} games"
    return _Finding("ok" if roms else "warning", "Atari", text, advice)


def _check_tensorflow(seconds: float) -> Iterator[_Finding]:
    """Imports TensorFlow, looks for GPUs, and trains for some seconds, 0 for not at all."""
    found, failure, errors = _probe(seconds)
    if not found:
        advice = "python -c 'import tensorflow' shows all; try a fresh virtual environment"
        yield _Finding("problem", "TensorFlow", f"cannot be imported: {failure}", advice)
        return
    facts = found[0]
    kind = "for CUDA" if facts["cuda"] else "for CPUs"
    text = f"{facts['version']}, built {kind}, imported in {facts['import_seconds']:.1f} s"
    yield _Finding("ok", "TensorFlow", text)
    yield _check_gpus(facts, os.environ.get("CUDA_VISIBLE_DEVICES"), errors)
    if not seconds:
        return
    if failure or len(found) < 2:
        advice = "python -m tensorpack.command._probe 5 shows all"
        yield _Finding("problem", "training", f"failed: {failure}", advice)
        return
    text = "{steps} steps through a queue in {seconds:.1f} s; cost from {first:.3g} to {last:.3g}"
    learns = found[1]["last"] < 0.9 * found[1]["first"]
    advice = "" if learns else "It does not learn: try another version of TensorFlow"
    yield _Finding("ok" if learns else "problem", "training", text.format(**found[1]), advice)


def _check_gpus(facts: Mapping[str, Any], visible: Optional[str], errors: str) -> _Finding:
    """Tells how many GPUs TensorFlow sees, or why it sees none.

    Args:
      facts: of `_probe.describe_tensorflow`.
      visible: the variable CUDA_VISIBLE_DEVICES.
      errors: what TensorFlow wrote to standard error.
    """
    if facts["gpus"]:
        count = len(facts["gpus"])
        return _Finding("ok", "GPU", f"TensorFlow sees {count}: {', '.join(facts['gpus'])}")
    if not facts["driver"]:
        text = "none: this machine has no driver of NVIDIA; training runs on the CPU"
        return _Finding("ok", "GPU", text)
    if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
        text, advice = f"CUDA_VISIBLE_DEVICES={visible} hides them", "unset CUDA_VISIBLE_DEVICES"
    elif not facts["cuda"]:
        text = "there is a driver, but this TensorFlow is built for CPUs"
        advice = "pip uninstall -y tensorflow-cpu; pip install 'tensorflow[and-cuda]'"
    else:
        reasons = [line for line in errors.splitlines() if _NO_GPU.search(line)]
        text = f"there is a driver, and {(reasons or ['no reason is given'])[0][-200:]}"
        advice = "pip install 'tensorflow[and-cuda]'; does nvidia-smi work?"
    return _Finding("warning", "GPU", f"none: {text}", advice)


def _probe(seconds: float) -> Tuple[List[Dict[str, Any]], str, str]:
    """Runs `_probe`; returns what it has found, how it failed, "" if not, and its errors."""
    # What a program writes to a pipe that is not read holds it up: both go to files.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", "tensorpack.command._probe", str(seconds)]
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
        code: Optional[int] = None
        with suppress(subprocess.TimeoutExpired):
            limit = _IMPORT_SECONDS + 10 * seconds
            code = subprocess.run(command, timeout=limit, **streams).returncode
        output.seek(0)
        errors.seek(0)
        found = [json.loads(line) for line in output.read().decode().splitlines()]
        text = errors.read().decode("utf-8", "replace")
    return found, _why(code, text), text


def _why(code: Optional[int], errors: str) -> str:
    """Returns in a line how a process failed, "" if it did not; no code: it did not end."""
    if code is None:
        return "it did not end in time and was killed"
    lines = [line.strip() for line in errors.splitlines() if line.strip()] or ["it wrote no error"]
    if code >= 0:
        return lines[-1][:300] if code else ""
    name = signal.Signals(-code).name
    known = {
        "SIGILL": "this CPU lacks instructions (AVX) that TensorFlow was built with",
        "SIGKILL": "perhaps for lack of memory",
    }
    return f"it was killed by {name}: {known.get(name, lines[-1][:300])}"
