"""What a run says about the process and the machine that it runs on; starts no process."""

import os
import platform
import re
import socket
import sys
from contextlib import suppress
from typing import Any, Dict, List, Optional

from tensorpack.utils._words import without_secrets
from tensorpack.utils.nvml import NVMLContext, visible_devices
from tensorpack.utils.workers.processes import usable_cores

_CPU_INFO = "/proc/cpuinfo"
_CPU_INFO_BYTES = 4096  # the first core is enough, of perhaps hundreds


def process_facts() -> Dict[str, Any]:
    """Returns the command, its folder, the process, and the versions of what it has loaded."""
    arguments = without_secrets(_arguments())
    return {
        "command": [os.path.basename(sys.executable or "python"), *map(_under_home, arguments)],
        "script": _under_home(script_path() or "") or None,
        "folder": _under_home(_absolute(".") or "") or None,
        "process": os.getpid(),
        "host": socket.gethostname(),
        "versions": {
            "tensorpack": _version_of("tensorpack"),
            "python": platform.python_version(),
            "tensorflow": _version_of("tensorflow"),
            "numpy": _version_of("numpy"),
        },
    }


def _arguments() -> List[str]:
    """Returns those of the interpreter, as given: `-m tensorpack.tf1 train.py`; `sys.argv` where
    the process was not started for this script.
    """
    given = list(getattr(sys, "orig_argv", []))  # since Python 3.10
    with suppress(OSError):
        if not given:
            with open("/proc/self/cmdline", "rb") as file:
                given = os.fsdecode(file.read()).split("\0")[:-1]
    count, own = len(sys.argv), list(sys.argv)
    if given[-count - 1 : -count] == ["-m"]:  # Python puts a path where the module was
        own[:1] = given[-count:][:1]
    return given[1:] if own and given[-count:] == own else sys.argv


def script_path() -> Optional[str]:
    """Returns the path of the running script; None in a shell or a notebook."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    # A program that runs scripts leaves the path of the script where the script looks for it.
    given = sys.argv[0] if sys.argv else ""
    path = given if given.endswith(".py") and os.path.isfile(given) else main
    return None if path is None else _absolute(path)


def _absolute(path: str) -> Optional[str]:
    with suppress(FileNotFoundError):  # where the working directory has been deleted
        return os.path.abspath(path)
    return None


def machine_facts() -> Dict[str, Any]:
    """Returns the CPU's name, the usable cores, bytes of memory, and the GPUs in use."""
    return {
        "cpu": _cpu_name(),
        "cores": usable_cores(),
        "memory": _memory_bytes(),
        "gpus": _gpus(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _version_of(module: str) -> Optional[str]:
    # Asked of what is loaded: this module is below TensorFlow, and loads nothing.
    version = getattr(sys.modules.get(module), "__version__", None)
    return None if version is None else str(version)


def _under_home(text: str) -> str:
    """A path, or an argument with paths, with `~` for the home, so that a record names no user."""
    home = re.escape(os.path.expanduser("~").rstrip(os.sep))
    whole = rf"(?<![^=,:\s]){home}(?![^{re.escape(os.sep)},:\s])"
    return re.sub(whole, "~", text) if home else text


def _cpu_name() -> str:
    with suppress(OSError):
        with open(_CPU_INFO, "rb") as file:
            text = file.read(_CPU_INFO_BYTES).decode("utf-8", "replace")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        if found is not None:
            return found.group(1).strip()
    return platform.machine()


def _memory_bytes() -> Optional[int]:
    with suppress(AttributeError, OSError, ValueError):  # not every system has these names
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _gpus() -> List[Dict[str, Any]]:
    """The GPUs that the process may use, by NVML."""
    found: List[Dict[str, Any]] = []
    visible = visible_devices()
    with suppress(ImportError, RuntimeError), NVMLContext() as nvml:
        devices = nvml.devices() if visible is None else [nvml.device(each) for each in visible]
        for device in devices:
            found.append({"name": device.name(), "memory": device.memory()["total"]})
    return found
