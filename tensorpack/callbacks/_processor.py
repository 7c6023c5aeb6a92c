"""How much of the processor is used: by this process and its children, and by everybody."""

import multiprocessing
import os
from typing import Optional

__all__ = ["cores", "cpu_seconds", "machine_seconds"]

# Fields of /proc/PID/stat behind the name, and of the first line of /proc/stat, see proc(5).
_USER, _SYSTEM = 11, 12
_BUSY_KINDS = (0, 1, 2, 5, 6, 7)  # all but idle and waiting for a disk; guests are in "user"


def cores() -> int:
    """Returns how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def cpu_seconds() -> float:
    """Returns the processor time that this process and its children have used, in seconds.

    Of the children those count that `multiprocessing` started and that are alive, where /proc tells
    of them, and those that have been waited for.
    """
    alive = sum(_of_child(each.pid) for each in multiprocessing.active_children())
    return sum(os.times()[:4]) + alive


def machine_seconds() -> Optional[float]:
    """Returns for how many seconds the average core of the machine has been busy, for anybody.

    None where /proc does not tell.
    """
    try:
        with open("/proc/stat", encoding="utf-8") as file:
            kinds = file.readline().split()[1:]
        busy = sum(int(kinds[i]) for i in _BUSY_KINDS)
        return busy / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
    except (OSError, IndexError, ValueError):
        return None


def _of_child(pid: Optional[int]) -> float:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):  # it has gone, or there is no /proc
        return 0.0
