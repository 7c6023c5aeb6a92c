"""Checks of arguments, each with an error that names the owner, the argument and the value.

`check_*` only checks. `as_*` returns the value in the one form that the code after it uses, so it
also takes `1e6`, `np.float32(3)` or `"25"` for a whole number, and one name for a list of names.
"""

import math
import operator
from contextlib import suppress
from typing import Any, List, Optional, Tuple

import numpy as np


def is_integer(value: Any) -> bool:
    """Returns whether a value is an integer of Python or numpy; a bool is not one."""
    if isinstance(value, (bool, np.bool_)):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def kind_of(value: Any) -> str:
    """Names the type of a value for an error; for a class it says how to get an instance."""
    if isinstance(value, type):
        return f"the class {value.__name__}. Create an instance: {value.__name__}(...)"
    return type(value).__name__


def check_kind(name: str, value: Any, kind: type, advice: str = "") -> Any:
    """Returns a value that is an instance of a class; else raises TypeError."""
    if not isinstance(value, kind):
        needed = f"an {kind.__name__}" if kind.__name__[0] in "AEIOU" else f"a {kind.__name__}"
        raise TypeError(f"{name} must be {needed}{advice}, got {kind_of(value)}.")
    return value


def as_count(owner: Any, name: str, value: Any, least: int = 1) -> int:
    """Returns a whole number of at least `least` as an int, whatever its type.

    Here and below `owner` is whose argument it is: an object, named by its class, or a name.
    """
    parsed = int(value) if isinstance(value, str) and value.isdigit() else value
    number = operator.index(parsed) if is_integer(parsed) else _real(owner, name, parsed)
    if least <= number < math.inf and number == int(number):
        return int(number)
    raise ValueError(_text(owner, name, f"a whole number of at least {least}", value))


def as_count_or_none(owner: Any, name: str, value: Any, least: int = 1) -> Optional[int]:
    """As `as_count` for what may be left out."""
    return None if value is None else as_count(owner, name, value, least)


def as_number(
    owner: Any, name: str, value: Any, least: float = -math.inf, most: float = math.inf
) -> float:
    """Returns a finite number from `least` to `most` as a float."""
    number = _real(owner, name, value)
    if math.isfinite(number) and least <= number <= most:
        return number
    ends = [f" of at least {least:g}"] if least > -math.inf else []
    ends += [f" of at most {most:g}"] if most < math.inf else []
    raise ValueError(_text(owner, name, f"a finite number{' and'.join(ends)}", value))


def as_positive(owner: Any, name: str, value: Any) -> float:
    """Returns a finite number above zero as a float."""
    number = _real(owner, name, value)
    if 0 < number < math.inf:
        return number
    raise ValueError(_text(owner, name, "a positive, finite number", value))


def as_range(
    owner: Any, name: str, value: Any, least: float = -math.inf, most: float = math.inf
) -> Tuple[float, float]:
    """Returns the two finite numbers (first, last) of a range as floats, in this order or equal."""
    numbers = [as_number(owner, name, x, least, most) for x in as_list(owner, name, value)]
    if len(numbers) == 2 and numbers[0] <= numbers[1]:
        return numbers[0], numbers[1]
    raise ValueError(_text(owner, name, "two numbers, the smaller one first", value))


def as_list(owner: Any, name: str, value: Any) -> List[Any]:
    """Returns the members of an iterable; strings and bytes, which are not split, are an error."""
    with suppress(TypeError):
        if not isinstance(value, (str, bytes)):
            return list(value)
    raise TypeError(_text(owner, name, "a list", value))


def as_names(owner: Any, name: str, value: Any) -> List[str]:
    """Returns a list of names, given as one string or as several."""
    names = [value] if isinstance(value, str) else as_list(owner, name, value)
    for item in names:
        if not isinstance(item, str):
            raise TypeError(f"{_name(owner)}: {name} must be a list of names, but has {item!r}.")
    return names


def _real(owner: Any, name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of more than 1024 bits
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise TypeError(_text(owner, name, "a number", value)) from None


def _text(owner: Any, name: str, needed: str, value: Any) -> str:
    return f"{_name(owner)}: {name} must be {needed}, but got {value!r}."


def _name(owner: Any) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__
