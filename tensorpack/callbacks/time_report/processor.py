"""How busy the processor is: with this process and its children, and with all programs."""

import multiprocessing
import os
from typing import List, Optional

__all__ = ["cpu_seconds", "machine_seconds"]

# Fields of /proc/PID/stat behind the name, and of the first line of /proc/stat, see proc(5).
_USER, _SYSTEM = 11, 12
_BUSY_KINDS = (0, 1, 2, 5, 6, 7)  # all but idle and waiting for a disk; guests are in "user"


def cpu_seconds() -> float:
    """Returns the processor time of this process and its children, in seconds.

    It includes children that have been waited for and, where there is /proc, running ones that
    `multiprocessing` started.
    """
    total = sum(os.times()[:4])
    for child in multiprocessing.active_children():
        fields = _fields(f"/proc/{child.pid}/stat")
        if len(fields) > _SYSTEM:
            ticks = int(fields[_USER]) + int(fields[_SYSTEM])
            total += ticks / os.sysconf("SC_CLK_TCK")
    return total


def machine_seconds() -> Optional[float]:
    """Returns how many seconds the average core has been busy with any program; None if unknown."""
    try:
        busy = sum(int(_fields("/proc/stat", "cpu ")[kind]) for kind in _BUSY_KINDS)
    except (IndexError, ValueError):
        return None
    return busy / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)


def _fields(path: str, behind: str = ")") -> List[str]:
    """The fields of a file's first line behind a mark; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().rpartition(behind)[2].split()
    except OSError:  # the process has ended, or the system has no /proc
        return []
