"""Numbers that flows with threads are given, or find for themselves."""

import operator
import os
from typing import Any

__all__ = ["BUFFER_BYTES", "check_counts", "usable_cores"]

BUFFER_BYTES = 256 * 2**20  # how much memory waiting datapoints take unless told otherwise


def usable_cores() -> int:
    """Returns how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def check_counts(flow: Any, **counts: Any) -> None:
    """Checks arguments of a flow by their names.

    Raises:
      TypeError: one is no integer.
      ValueError: one is less than one.
    """
    for name, count in counts.items():
        what = f"{type(flow).__name__}: {name} must be at least 1, but got {count!r}."
        try:
            number = operator.index(count)
        except TypeError as error:
            raise TypeError(what) from error
        if number < 1:
            raise ValueError(what)
