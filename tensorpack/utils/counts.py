"""Checks of the numbers that somebody is given: how many of something, and how large it may be."""

import operator
from typing import Any

import numpy as np

__all__ = ["check_counts", "check_integers", "check_sizes", "is_integer"]


def is_integer(value: Any) -> bool:
    """Returns whether a value is an integer, also one of numpy; a bool is none."""
    if isinstance(value, (bool, np.bool_)):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def check_integers(owner: Any, **numbers: Any) -> None:
    """Checks that arguments are integers, see `is_integer`.

    Args:
      owner: whose arguments they are; an object, which goes by its class, or a name.
      numbers: the arguments by their names.

    Raises:
      TypeError: one is no integer.
    """
    for name, number in numbers.items():
        if not is_integer(number):
            is_finite = isinstance(number, (float, np.floating)) and np.isfinite(number)
            advice = " Divide with // instead of /, or use int()." if is_finite else ""
            raise TypeError(
                f"{_name(owner)}: {name} must be an integer, but got {number!r}.{advice}"
            )


def check_counts(owner: Any, least: int = 1, **counts: Any) -> None:
    """Checks that arguments are integers and large enough.

    Args:
      owner: as in `check_integers`.
      least: the smallest number that is allowed.
      counts: the arguments by their names.

    Raises:
      TypeError: one is no integer.
      ValueError: one is too small.
    """
    check_integers(owner, **counts)
    for name, count in counts.items():
        if count < least:
            raise ValueError(f"{_name(owner)}: {name} must be at least {least}, but got {count}.")


def check_sizes(owner: Any, **sizes: Any) -> None:
    """Checks that arguments are numbers of bytes; `1e9` is one as well.

    Args:
      owner: as in `check_integers`.
      sizes: the arguments by their names.

    Raises:
      TypeError: one is no number.
      ValueError: one is less than one.
    """
    for name, size in sizes.items():
        what = f"{_name(owner)}: {name} is a size, but got {size!r}. Give a number of at least 1."
        try:
            is_enough = size >= 1
        except TypeError as error:
            raise TypeError(what) from error
        if not is_enough:
            raise ValueError(what)


def _name(owner: Any) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
