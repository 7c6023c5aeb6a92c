"""Changes the dtype of arrays, but never what they say.

numpy gives float64 and int64 where nobody asks for anything else, so narrowing has to be possible;
what does not survive it is an error. Knows nothing of datapoints: `component` adds where an error
came from.
"""

from typing import Any

import numpy as np

__all__ = ["cast", "is_widening", "to_strings"]

_FAMILIES = {"b": "bool", "i": "integer", "u": "integer", "f": "float", "c": "complex"}


def is_widening(source: np.dtype, dtype: np.dtype) -> bool:
    """Whether every value of `source` has its place in `dtype`, by numpy's rules for safe casts."""
    return bool(np.can_cast(source, dtype, "safe"))


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns `array` as `dtype`, itself if it is that already.

    Numbers may change to a wider dtype of any kind (bool to int, int to float), to a narrower one
    of the same kind, and integers to a float that holds all of them exactly. NaN and infinity stay
    what they are.

    Raises:
      TypeError: the cast would change the kind (float to int, str to number, int to bool).
      ValueError: a value is out of the range of `dtype`.
    """
    if array.dtype == dtype:
        return array
    source, target = _FAMILIES.get(array.dtype.kind), _FAMILIES.get(dtype.kind)
    if source is None:
        raise TypeError(f"{array.dtype} is not a dtype of numbers")
    if is_widening(array.dtype, dtype):
        return array.astype(dtype)
    if source == "integer" and target in ("integer", "float"):
        return _narrow_integers(array, dtype)
    if source == target or (source == "float" and target is None):  # None: bfloat16
        return _narrow_floats(array, dtype)
    raise TypeError(
        f"a cast from {array.dtype} to {dtype} changes what the values are: do it in the dataflow"
    )


def _narrow_integers(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.size:
        if dtype.kind == "f":
            highest = 2 ** (np.finfo(dtype).nmant + 1)  # up to here every integer is exact
            lowest = -highest
        else:
            lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
        for value in (int(array.min()), int(array.max())):
            if not lowest <= value <= highest:
                raise ValueError(f"{value} is out of the range of {dtype}, [{lowest}, {highest}]")
    return array.astype(dtype)


def _narrow_floats(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        narrow = array.astype(dtype)
    # numpy's functions do not know bfloat16 everywhere
    finite = np.isfinite(narrow if dtype.kind in "fc" else narrow.astype(np.float32))
    if not finite.all():
        lost = np.isfinite(array) & ~finite
        if lost.any():
            raise ValueError(f"{array[lost].flat[0]} is out of the range of {dtype}")
    return narrow


def to_strings(value: Any) -> np.ndarray:
    """Returns an object array of `str` and `bytes`, which is how TensorFlow takes strings.

    Raises:
      TypeError: there is anything else in it.
    """
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    if array.dtype.kind in "SU":
        return array.astype(object)
    if array.dtype.kind != "O":
        raise TypeError(
            f"a cast from {array.dtype} to str changes what the values are: do it in the dataflow"
        )
    for each in array.flat:
        if not isinstance(each, (str, bytes)):
            raise TypeError(f"only str and bytes are strings, there is {_kind(each)} among them")
    return array


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
