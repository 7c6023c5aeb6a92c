"""What `tensorpack doctor` asks of Python, its packages, the environment and the machine.

Nothing here loads TensorFlow. A check takes what it looks at as arguments, and yields findings.
"""

import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from typing import Dict, Iterable, Iterator, Mapping, NamedTuple, Optional, Tuple

from tensorpack.utils._sizes import size_text

OK, WARNING, PROBLEM = "ok", "warning", "problem"

_GB, _MB = 1e9, 1e6
_REQUIRED = ("msgpack", "numpy", "tabulate", "tqdm")
_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "intel-tensorflow")
# Package, and what needs it.
_OPTIONAL = (
    ("opencv-python-headless", "images and their augmentors, Atari games"),
    ("pillow", "images in files"),
    ("ale-py", "Atari games"),
    ("gymnasium", "tensorpack.RL.GymEnv"),
    ("matplotlib", "tensorpack plot --out"),
    ("tensorboard", "curves in the browser"),
    ("pyzmq", "dataflows on other machines"),
    ("lmdb", "LMDB files"),
    ("h5py", "HDF5 files"),
    ("google-crc32c", "TFRecord files"),
    ("scikit-learn", "svmlight files"),
    ("scipy", "files of MATLAB"),
    ("nvidia-ml-py", "what a GPU does during a run"),
)
_OPENCVS = ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless")
_INSTALLED = re.compile(r"(.+?)-(\d[^-]*)(?:-py.*)?\.(?:dist-info|egg-info)")


class Finding(NamedTuple):
    """One line of the report.

    Attributes:
      level: `OK`, `WARNING` or `PROBLEM`.
      topic: what was looked at, in a word or two.
      text: what was found.
      advice: the next move; "" where none is needed.
    """

    level: str
    topic: str
    text: str
    advice: str = ""


Packages = Mapping[str, str]  # name, as in pip install, to version


def installed_packages(folders: Iterable[str]) -> Dict[str, str]:
    """Returns the packages whose metadata are in folders such as those of `sys.path`."""
    found: Dict[str, str] = {}
    for folder in folders:
        with suppress(OSError):
            for name in sorted(os.listdir(folder or ".")):
                match = _INSTALLED.fullmatch(name)
                if match is not None:
                    package = re.sub(r"[-_.]+", "-", match.group(1)).lower()
                    found.setdefault(package, match.group(2))
    return found


def check_python(version: Tuple[int, ...], packages: Packages) -> Iterator[Finding]:
    """Looks at Python and at what the library requires."""
    text = ".".join(map(str, version)) + f" ({sys.executable})"
    if (3, 10) <= version[:2] <= (3, 13) or version[:2] == (3, 7):
        yield Finding(OK, "Python", text)
    else:
        advice = "Tested are 3.10 to 3.13, and 3.7 for TensorFlow 1.15."
        yield Finding(WARNING, "Python", text, advice)
    missing = [name for name in _REQUIRED if name not in packages]
    if missing:
        text = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        yield Finding(PROBLEM, "packages", text, f"pip install {' '.join(missing)}")
    else:
        yield Finding(OK, "packages", ", ".join(f"{name} {packages[name]}" for name in _REQUIRED))


def check_tensorflow_packages(packages: Packages) -> Iterator[Finding]:
    """Looks at which packages of TensorFlow there are, and whether they fit each other."""
    found = {name: packages[name] for name in _TENSORFLOWS if name in packages}
    if not found:
        text = "not installed; tensorpack.dataflow, tensorpack.RL and this program work without it"
        advice = "To train: pip install tensorflow-cpu, or for a GPU: 'tensorflow[and-cuda]'"
        yield Finding(WARNING, "TensorFlow", text, advice)
        return
    if len(found) > 1:
        text = f"{' and '.join(found)} are both installed, and overwrite each other's files"
        advice = f"pip uninstall -y {' '.join(found)}, then install one of them"
        yield Finding(PROBLEM, "TensorFlow", text, advice)
    version = _numbers(next(iter(found.values())))
    if version[:2] != (1, 15) and version < (2, 16):
        text = f"{next(iter(found.values()))} is not tested"
        yield Finding(WARNING, "TensorFlow", text, "Tested are 1.15.5, and 2.16 or later.")
    if version < (2,):
        yield from _check_for_tensorflow1(packages)


def _check_for_tensorflow1(packages: Packages) -> Iterator[Finding]:
    for name, limit in (("numpy", (1, 19)), ("protobuf", (3, 21))):
        if name in packages and _numbers(packages[name]) >= limit:
            bound = ".".join(map(str, limit))
            text = f"{name} {packages[name]} is too new for TensorFlow 1.15"
            yield Finding(PROBLEM, "TensorFlow", text, f"pip install '{name}<{bound}'")


_ODD_VARIABLES = (  # name, values, what they do, the next move
    (
        "TF_ENABLE_ONEDNN_OPTS",
        "0",
        "turns oneDNN off: a CPU computes more slowly",
        "unset it, unless results must not depend on it",
    ),
    ("TF_CPP_MIN_LOG_LEVEL", "[3-9].*", "hides TensorFlow's errors", "set it to 2"),
    ("OMP_NUM_THREADS", "1", "lets one thread compute", "unset it"),
    (
        "TF_CONFIG",
        "(?s).+",
        "makes every training a part of a group, and wait for the others",
        "unset it, unless this is meant",
    ),
    ("PYTHONOPTIMIZE", "(?s).+", "turns the assertions off", "unset it"),
)


def check_environment(environ: Mapping[str, str], packages: Packages) -> Iterator[Finding]:
    """Looks at variables that change what TensorFlow does."""
    odd = [each for each in _ODD_VARIABLES if re.fullmatch(each[1], environ.get(each[0], ""))]
    if environ.get("TF_USE_LEGACY_KERAS", "0").lower() in ("1", "true"):
        text, advice = "makes tf.keras that of tf-keras", ""
        if "tf-keras" not in packages:
            text = "needs tf-keras, which is not installed"
            advice = "unset TF_USE_LEGACY_KERAS, or pip install tf-keras"
        odd.insert(0, ("TF_USE_LEGACY_KERAS", "", text, advice))
    for name, _, text, advice in odd:
        yield Finding(WARNING, "environment", f"{name}={environ[name]} {text}", advice)
    if not odd:
        yield Finding(OK, "environment", "no variable that is known to make trouble")


class Machine(NamedTuple):
    """What is there of what runs out, in bytes; None for what is not known."""

    cores: int
    memory: Optional[float]
    shared_memory: Optional[float]
    descriptors: int


def look_at_machine(root: str = "/") -> Machine:
    """Returns what this process may use; `/proc` and `/sys` are in `root`."""
    import resource

    from tensorpack.utils.memory import available_bytes
    from tensorpack.utils.processes import usable_cores

    shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else None
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return Machine(usable_cores(), available_bytes(root), shared, descriptors)


def check_machine(machine: Machine) -> Iterator[Finding]:
    """Looks at cores, memory, shared memory and file descriptors."""
    yield Finding(OK, "cores", str(machine.cores))
    if machine.memory is not None:
        level, advice = OK, ""
        if machine.memory < 0.5 * _GB:
            level, advice = PROBLEM, "End other programs: TensorFlow alone takes 0.5 GB"
        elif machine.memory < 4 * _GB:
            level, advice = WARNING, "Give a replay memory or a queue a smaller size"
        yield Finding(level, "memory", f"{size_text(machine.memory)} are free", advice)
    if machine.shared_memory is None:
        yield Finding(WARNING, "shared memory", "there is no /dev/shm", "Mount a tmpfs there")
    else:
        level, advice = OK, ""
        text = f"{size_text(machine.shared_memory)} are free in /dev/shm"
        if machine.shared_memory < 256 * _MB:
            text, level = f"{text}: processes share batches", WARNING
            advice = "With docker: --shm-size=2g"
        yield Finding(level, "shared memory", text, advice)
    level = WARNING if machine.descriptors < 1024 else OK
    advice = "ulimit -n 4096" if level == WARNING else ""
    yield Finding(level, "open files", f"at most {machine.descriptors} at a time", advice)


def check_folder(topic: str, path: str, level: str) -> Iterator[Finding]:
    """Looks whether a folder can be written to, or made; `level` is that of the finding if not."""
    existing = os.path.abspath(path)
    while not os.path.isdir(existing) and os.path.dirname(existing) != existing:
        if os.path.lexists(existing):
            yield Finding(level, topic, f"{existing} is not a folder", f"mv {existing} elsewhere")
            return
        existing = os.path.dirname(existing)
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".tensorpack-doctor-"):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        advice = f"Choose a folder in which you may write, or chown {existing}"
        yield Finding(level, topic, f"{path} cannot be written to: {error.strerror}", advice)
        return
    text = f"{path} can be written to; {size_text(free)} are free"
    if free < _GB:
        yield Finding(WARNING, topic, text, "Make room: a run keeps 10 checkpoints by default")
    else:
        yield Finding(OK, topic, text)


def check_optional(packages: Packages) -> Iterator[Finding]:
    """Names the optional packages that are missing, and what needs them."""
    for name, user in _OPTIONAL:
        is_there = name in packages
        if name.startswith("opencv"):
            is_there = is_there or any(other in packages for other in _OPENCVS)
        if not is_there:
            yield Finding(OK, "optional", f"without {name}: no {user}", f"pip install {name}")


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])
