"""Numbers that a callback was given are what it can use, or are refused."""

import math
import numbers
from typing import Any

__all__ = ["positive_number", "whole_number"]


def positive_number(argument: str, value: Any) -> float:
    """Returns a number above zero, of any kind of real number but bool.

    Raises:
      ValueError: it is something else.
    """
    if _is_real(value) and 0 < value < math.inf:
        return value
    raise ValueError(f"{argument} must be a positive, finite number, got {value!r}.")


def whole_number(argument: str, value: Any) -> int:
    """Returns a whole number of at least 1 as an int, whatever its type.

    Raises:
      ValueError: it is something else.
    """
    if _is_real(value) and 1 <= value < math.inf and int(value) == value:
        return int(value)
    raise ValueError(f"{argument} must be a whole number of at least 1, got {value!r}.")


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
