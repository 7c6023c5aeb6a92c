"""Objects to bytes and back, for pipes and sockets; reading bytes never runs code.

The format is msgpack with three extensions of our own: 1 is a numpy array, 2 a numpy scalar, 3 a
tuple. An array is the length of its header (two bytes), the header (msgpack of its dtype and its
shape), and its bytes in C order. Only dtypes of plain numbers and text exist: no objects.
"""

import re
import struct
from typing import Any, Tuple

import numpy as np

from .optional import require

__all__ = ["dumps", "loads"]

_ARRAY, _SCALAR, _TUPLE = 1, 2, 3
_LENGTH = struct.Struct(">H")
_DTYPE = re.compile(r"[<>|][biufcSU][0-9]{1,9}")
_MAX_BYTES = 2**32 - 1  # of one msgpack extension


def dumps(obj: Any) -> bytes:
    """Returns an object as bytes.

    Args:
      obj: None, booleans, integers of 64 bits, floats, text, bytes, numpy arrays and scalars, and
        lists, tuples and dictionaries of these.

    Raises:
      ImportError: if msgpack is not installed.
      TypeError: if there is anything else in it, such as an array of objects.
      ValueError, OverflowError: if an array has 4 GiB or more, or an integer more than 64 bits.
    """
    return require("msgpack").packb(obj, default=_encode, strict_types=True)


def loads(buf: Any) -> Any:
    """Returns the object that `dumps` wrote. Arrays are fresh copies and may be written to.

    Args:
      buf: bytes, or anything with the buffer interface.

    Raises:
      ImportError: if msgpack is not installed.
      ValueError: if the bytes are damaged or were written by something else.
    """
    msgpack = require("msgpack")
    try:
        return msgpack.unpackb(buf, ext_hook=_decode, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise ValueError(f"These are not the bytes of one object: {error}") from error


def _encode(obj: Any) -> Any:
    ext_type = require("msgpack").ExtType
    if type(obj) is tuple:
        return ext_type(_TUPLE, dumps(list(obj)))
    if isinstance(obj, np.ndarray):
        return ext_type(_ARRAY, _array_to_bytes(obj))
    if isinstance(obj, np.generic):
        return ext_type(_SCALAR, _array_to_bytes(np.asarray(obj)))
    raise TypeError(f"Cannot serialize a {type(obj).__name__}: make it an array, list or dict.")


def _decode(code: int, data: bytes) -> Any:
    if code == _ARRAY:
        return _bytes_to_array(data)
    if code == _SCALAR:
        return _bytes_to_array(data)[()]
    if code == _TUPLE:
        return tuple(loads(data))
    raise ValueError(f"unknown extension {code}")


def _array_to_bytes(array: np.ndarray) -> bytes:
    if not _DTYPE.fullmatch(array.dtype.str):
        raise TypeError(f"Cannot serialize an array of {array.dtype}: make it numbers or text.")
    if array.nbytes > _MAX_BYTES - 1024:
        raise ValueError(f"Cannot serialize an array of {array.nbytes} bytes: send it in parts.")
    header = dumps([array.dtype.str, list(array.shape)])
    return b"".join([_LENGTH.pack(len(header)), header, array.tobytes()])


def _bytes_to_array(data: bytes) -> np.ndarray:
    dtype, shape, start = _read_header(data)
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize != len(data) - start:
        raise ValueError(f"{len(data) - start} bytes for an array of {dtype} {shape}")
    if count == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype, count, start).reshape(shape).copy()


def _read_header(data: bytes) -> Tuple[np.dtype, Tuple[int, ...], int]:
    if len(data) < _LENGTH.size:
        raise ValueError("an array without a header")
    start = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    header = loads(data[_LENGTH.size : start])
    if not (isinstance(header, list) and len(header) == 2 and isinstance(header[1], list)):
        raise ValueError("an array with a wrong header")
    name, shape = header
    if not (isinstance(name, str) and _DTYPE.fullmatch(name)):
        raise ValueError(f"an array of {name!r}")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"an array of shape {shape!r}")
    return np.dtype(name), tuple(shape), start
