"""Arrays from the parts that old files have of them: the name of a dtype, a shape, and bytes.

What a file says is checked before numpy hears of it, and only plain numbers and text are made.
"""

import re
from typing import Any

import numpy as np

from .errors import BadRecord, RefusedRecord

__all__ = ["array_of", "plain_dtype"]

_PLAIN = re.compile(r"[<>|=]?[biufcSU][0-9]{1,9}")
_MOST_AXES = 32


def plain_dtype(name: Any) -> np.dtype:
    """Returns the dtype of a name such as `<f4`.

    Raises:
      RefusedRecord: it is not one of numbers, booleans or text.
      BadRecord: there is no such dtype.
    """
    if isinstance(name, bytes):
        name = name.decode("latin1")
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise RefusedRecord(
            f"It has an array of dtype {name!r:.80}. Only arrays of plain numbers and text are "
            "read: write the file anew where it can be read."
        )
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise BadRecord(f"It has an array of dtype {name!r}, which does not exist.") from error
    if dtype.itemsize == 0:
        raise BadRecord(f"It has an array of dtype {name!r}, whose elements are empty.")
    return dtype


def array_of(data: Any, dtype: np.dtype, shape: Any, order: str = "C") -> np.ndarray:
    """Returns a new array of a shape.

    Args:
      data: its bytes, exactly.
      dtype: a plain one.
      shape: a list or tuple of integers.
      order: "C" or "F", as the bytes are.

    Raises:
      BadRecord: these do not fit together.
    """
    if not isinstance(shape, (list, tuple)) or len(shape) > _MOST_AXES:
        raise BadRecord(f"It has an array of shape {shape!r:.80}.")
    count = 1
    for size in shape:
        if type(size) is not int or size < 0:
            raise BadRecord(f"It has an array of shape {shape!r:.80}.")
        count *= size
    if not isinstance(data, (bytes, bytearray)) or count * dtype.itemsize != len(data):
        raise BadRecord(f"An array of {dtype} {tuple(shape)} does not have as many bytes.")
    try:
        if count == 0:
            return np.empty(shape, dtype)
        return np.frombuffer(data, dtype).reshape(tuple(shape), order=order).copy()  # type: ignore[call-overload]
    except ValueError as error:
        raise BadRecord(f"An array of {dtype} {tuple(shape)} cannot be made: {error}") from error
