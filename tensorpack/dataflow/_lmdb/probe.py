"""Finds out whether an LMDB file can be opened, before this process opens it.

A damaged or malicious file can crash liblmdb. So all pages are checked first, and liblmdb is tried
on the file, in a process of its own, which may crash or be stopped.
"""

import json
import os
import signal
import sys
from typing import Any, Dict, Tuple

from tensorpack.utils.processes import subproc_call

from .._files import PathLike
from . import pages
from .errors import DamagedLMDB

__all__ = ["Identity", "check_header", "data_file", "identity", "probe"]

# Device, number, size in bytes, and time of the last change in nanoseconds.
Identity = Tuple[int, int, int, int]

_SECONDS = 600.0

# The path is that of this process before anything is imported from it.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[3:]; import runpy; "
    "runpy.run_path(sys.argv[1])['main'](sys.argv[2])"
)


def data_file(path: PathLike) -> str:
    """Returns the file of a database: the path itself, or `data.mdb` if it is a directory.

    Raises:
      FileNotFoundError: there is none.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        file = os.path.join(path, "data.mdb")
        if not os.path.isfile(file):
            raise FileNotFoundError(f"{path} is a directory without data.mdb: no LMDB database.")
        return file
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no LMDB file {path} (seen from {os.getcwd()}).")
    return path


def identity(path: str) -> Identity:
    """Returns what changes when a file is written to or replaced."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def check_header(path: str) -> None:
    """Looks at the first two pages, in this process.

    Raises:
      DamagedLMDB: it is no LMDB file.
      OSError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            if pages.is_known_format(file):
                pages.read_meta(file)
    except pages.PageError as error:
        raise DamagedLMDB(path, error.reason, offset=error.offset) from error


def probe(path: str) -> None:
    """Checks all pages, and tries liblmdb, in a process of its own.

    Raises:
      DamagedLMDB: the file is damaged, or liblmdb crashed.
      RuntimeError: it could not be checked, or not in ten minutes.
    """
    program = [sys.executable, "-c", _PROGRAM, pages.__file__, path]
    search = [folder for folder in sys.path if isinstance(folder, str)]
    output, code = subproc_call(program + search, timeout=_SECONDS)
    report = _last_report(output)
    if "records" in report:
        return
    if "reason" in report:
        raise DamagedLMDB(path, report["reason"], offset=report.get("offset"))
    if code > 128:
        raise DamagedLMDB(path, f"LMDB crashed on it, in a process of its own: {_name(code)}.")
    problem = f"took more than {_SECONDS:.0f} s" if code == -1 else f"failed with code {code}"
    raise RuntimeError(
        f"The check of {path} {problem}. If you trust the file, pass probe=False.\n"
        + output.decode(errors="replace")
    )


def _last_report(output: bytes) -> Dict[str, Any]:
    """Returns what the check wrote, or nothing; warnings may stand before and after it."""
    for line in reversed(output.splitlines()):
        if line.startswith(b"{"):
            try:
                return dict(json.loads(line.decode()))
            except ValueError:
                continue
    return {}


def _name(code: int) -> str:
    try:
        return signal.Signals(code - 128).name
    except ValueError:
        return f"signal {code - 128}"
