"""Numbers that flows with threads are given, or find for themselves."""

import os

__all__ = ["BUFFER_BYTES", "usable_cores"]

BUFFER_BYTES = 256 * 2**20  # how much memory waiting datapoints take unless told otherwise


def usable_cores() -> int:
    """Returns how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
