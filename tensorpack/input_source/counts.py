"""Numbers of things, as arguments of input sources."""

import operator
from typing import Any

import numpy as np

__all__ = ["check_count"]


def check_count(name: str, count: Any) -> int:
    """Returns an argument that is a number of things, as an int.

    Raises:
      TypeError: it is no integer.
      ValueError: it is less than one.
    """
    if isinstance(count, (bool, np.bool_)) or not hasattr(count, "__index__"):
        raise TypeError(f"{name} is a whole number of at least 1, got {count!r}: give an int.")
    number = operator.index(count)
    if number < 1:
        raise ValueError(f"{name} is at least 1, got {number}.")
    return number
