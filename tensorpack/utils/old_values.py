"""Decodes what tensorpack of 2017 wrote by msgpack, and later versions by pickle.

The bytes have neither version nor checksum, so damage is found only where it breaks their
structure. Only containers, numbers, text, bytes and plain numpy arrays come out of them, and no
code runs: what they say of an array is checked before numpy sees it. This is the only module that
reads pickles, where the user has said `allow_pickle`.
"""

import collections
import importlib
import io
import pickle
import re
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from .optional import require
from .packed_arrays import MAX_DIMENSIONS, nbytes_of

__all__ = [
    "BadRecord",
    "RefusedRecord",
    "looks_like_msgpack",
    "looks_like_pickle",
    "unpack",
    "unpickle",
]

_PLAIN = re.compile(r"[<>|=]?[biufcSU][0-9]{1,9}")
_DEPTH = 64  # of containers in containers

# The first byte of a msgpack list or dict: of up to 15 elements, of more, of many.
_CONTAINERS = frozenset([*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF])


class BadRecord(Exception):
    """Bytes are damaged. The caller, who knows where they are from, raises an error about it."""


class RefusedRecord(Exception):
    """Bytes may be whole but are not decoded; the caller raises `ValueError`, and skips none."""


def looks_like_pickle(value: bytes) -> bool:
    """Whether the bytes begin as a pickle of the protocols 2 to 5 does."""
    return len(value) > 2 and value[0] == 0x80 and 2 <= value[1] <= 5


def looks_like_msgpack(value: bytes) -> bool:
    """Whether the bytes begin as a list or a dict does."""
    return value[:1] != b"" and value[0] in _CONTAINERS


def unpack(value: bytes) -> Any:
    """Returns the object that tensorpack of 2017 wrote by msgpack.

    Raises:
      BadRecord: the bytes are damaged, or were written by something else.
      ImportError: msgpack is not installed.
      RefusedRecord: there is an array of objects or of fields in it.
    """
    msgpack = require("msgpack")
    try:
        return msgpack.unpackb(
            value, object_hook=_restore, ext_hook=_no_extension, raw=False, strict_map_key=False
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise BadRecord(f"It is damaged, or was not written by tensorpack: {error}") from error


def _restore(found: Dict[Any, Any]) -> Any:
    """Returns the array, scalar or complex number that msgpack_numpy wrote as a dict."""
    data: Any = found.get(b"data")
    if b"data" in found and b"nd" in found and b"type" in found:
        if found.get(b"kind") in (b"O", "O"):
            raise RefusedRecord(
                "It has an array of objects, which is a pickle. Write the file again where it was "
                "made, with arrays of numbers or text."
            )
        dtype = _plain_dtype(found[b"type"])
        if not found[b"nd"]:
            return _array(data, dtype, ())[()]
        return _array(data, dtype, found.get(b"shape"))
    if b"data" in found and found.get(b"complex") is True:
        return complex(data.decode("ascii") if isinstance(data, bytes) else data)
    return found


def _no_extension(code: int, data: bytes) -> Any:
    raise BadRecord(f"It has a msgpack extension {code}, which tensorpack did not write.")


def _plain_dtype(name: Any) -> np.dtype:
    if isinstance(name, bytes):
        name = name.decode("latin1")
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise RefusedRecord(
            f"It has an array of dtype {name!r:.80}. Only arrays of plain numbers and text are "
            "read: write the file again where it can be read."
        )
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise BadRecord(f"It has an array of dtype {name!r}, which does not exist.") from error
    if dtype.itemsize == 0:
        raise BadRecord(f"It has an array of dtype {name!r}, whose elements are empty.")
    return dtype


def _array(data: Any, dtype: np.dtype, shape: Any, order: str = "C") -> np.ndarray:
    """Returns a new array; `order` is that of its bytes, "C" or "F"."""
    is_shape = isinstance(shape, (list, tuple)) and len(shape) <= MAX_DIMENSIONS
    if not is_shape or not all(type(size) is int and size >= 0 for size in shape):
        raise BadRecord(f"It has an array of shape {shape!r:.80}.")
    if not isinstance(data, (bytes, bytearray)) or nbytes_of(dtype, shape) != len(data):
        raise BadRecord(f"An array of {dtype} {tuple(shape)} does not have as many bytes.")
    try:
        return np.ndarray(tuple(shape), dtype, data, order=order).copy()  # type: ignore[arg-type]
    except ValueError as error:
        raise BadRecord(f"An array of {dtype} {tuple(shape)} cannot be made: {error}") from error


def unpickle(value: bytes, objects: bool = False) -> Any:
    """Returns the object that was pickled.

    A pickle can name sets, complex numbers, ordered dicts, and numpy's arrays and scalars; the last
    two are made here, not by numpy. Anything else is an error and is not even imported.

    Args:
      value: the pickle, of protocol 2 to 5.
      objects: whether it may have numpy arrays of objects, which become lists.

    Raises:
      BadRecord: it is damaged.
      RefusedRecord: it needs something else.
    """
    try:
        _check_memory(value)
        # Bytes of Python 2 become text, of which no character is lost.
        reader = _Unpickler(io.BytesIO(value), encoding="latin1")
        reader.objects = objects
        found = reader.load()
        return _plain(found, {}, _DEPTH)
    except (BadRecord, RefusedRecord):
        raise
    except Exception as error:  # damaged bytes can make a pickle fail in almost every way
        raise BadRecord(f"It is a damaged pickle: {type(error).__name__}: {error}") from error


def _check_memory(value: bytes) -> None:
    """Raises BadRecord if a damaged number would make the unpickler take gigabytes."""
    genops = importlib.import_module("pickletools").genops  # a large module, rarely needed
    for count, (opcode, argument, _) in enumerate(genops(value)):
        if opcode.name.endswith("PUT") and argument > count:
            raise BadRecord("It is a damaged pickle: it leaves out what it counts.")


class _Unpickler(pickle.Unpickler):
    objects = False  # whether arrays of objects are read

    def find_class(self, module: str, name: str) -> Any:
        try:
            if self.objects and _KNOWN[module, name] is _ARRAYS:
                return _OBJECTS
            return _KNOWN[module, name]
        except KeyError:
            raise RefusedRecord(
                f"It is a pickle that needs {module}.{name}. Only lists, tuples, dicts, sets, "
                "numbers, text, bytes and plain numpy arrays are read from a pickle: write the "
                "file again where it was made."
            ) from None


class _Maker:
    """A function that a pickle can call. Only what it makes can be given a state."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *args: Any) -> Any:
        return self._make(*args)

    def __setstate__(self, state: Any) -> None:
        raise BadRecord("It is a damaged pickle: something has a state that never has one.")


class _Dtype:
    """Made where the pickle says `numpy.dtype`."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.plain = None if name in _OBJECT_DTYPES else _plain_dtype(name)

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[2:5] != (None, None, None):
            raise RefusedRecord("It has an array with fields, which is not read.")
        if self.plain is not None and state[1] in ("<", ">"):
            self.plain = self.plain.newbyteorder(state[1])


class _Array:
    """Made where the pickle says `_reconstruct`; holds the array after its state was set."""

    value: Any = None
    objects = False

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, data = state
        if isinstance(data, list):
            if not self.objects:
                raise RefusedRecord("It has an array of objects, which is not read.")
            self.value = _nested(data, shape, "F" if is_fortran else "C")
            return
        self.value = _array(_bytes(data), _plain_of(dtype), shape, "F" if is_fortran else "C")


class _Objects(_Array):
    """The same, where an array of objects becomes a list of lists."""

    objects = True


def _nested(data: List[Any], shape: Any, order: Any) -> List[Any]:
    array = np.empty(len(data), object)
    for index, each in enumerate(data):
        array[index] = each
    try:
        return array.reshape(shape, order=order).tolist()
    except (TypeError, ValueError) as error:
        raise BadRecord(f"An array of shape {shape!r:.80} has {len(data)} objects.") from error


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> _Array:
    """Makes an array as a pickle of protocol 5 has it."""
    made = _Array()
    made.value = _array(data, _plain_of(dtype), shape, "F" if order == "F" else "C")
    if order == "K" and axes is not None:
        made.value = made.value.transpose(axes)
    return made


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    """Makes bytes, which a pickle of protocol 2 has as text."""
    if encoding != "latin1":
        raise BadRecord(f"It is a damaged pickle: bytes as {encoding!r:.40}.")
    return text.encode("latin1")


def _plain_of(dtype: Any) -> np.dtype:
    if not isinstance(dtype, _Dtype):
        raise BadRecord("It is a damaged pickle: an array without a dtype.")
    if dtype.plain is None:
        raise RefusedRecord("It has an array of objects, which is not read.")
    return dtype.plain


def _bytes(data: Any) -> Any:
    return data.encode("latin1") if isinstance(data, str) else data


_OBJECT_DTYPES = ("O", "O4", "O8")
_ARRAYS, _OBJECTS = _Maker(lambda *_: _Array()), _Maker(lambda *_: _Objects())
_KNOWN: Dict[Tuple[str, str], Any] = {
    ("numpy", "dtype"): _Maker(_Dtype),
    ("numpy", "ndarray"): "numpy.ndarray",  # only ever handed to `_reconstruct`
    ("_codecs", "encode"): _Maker(_encoded),
    ("collections", "OrderedDict"): collections.OrderedDict,
}
for _core in "numpy.core", "numpy._core":
    _KNOWN[f"{_core}.multiarray", "_reconstruct"] = _ARRAYS
    _KNOWN[f"{_core}.multiarray", "scalar"] = _Maker(
        lambda dtype, data: _array(_bytes(data), _plain_of(dtype), ())[()]
    )
    _KNOWN[f"{_core}.numeric", "_frombuffer"] = _Maker(_from_buffer)
for _builtins in "builtins", "__builtin__":
    _KNOWN[_builtins, "bytes"] = _Maker(lambda: b"")
    _KNOWN.update({(_builtins, kind.__name__): kind for kind in (set, frozenset, complex)})


def _plain(found: Any, done: Dict[int, Any], depth: int) -> Any:
    """Puts arrays in the place of what made them; `done` has earlier results by id."""
    if id(found) in done:
        return done[id(found)]
    if depth == 0:
        raise BadRecord("It is nested too deep, or in itself.")
    if isinstance(found, _Array):
        result = found.value
        if result is None:
            raise BadRecord("It is a damaged pickle: an array without a state.")
        if isinstance(result, list):
            result = _plain(result, done, depth - 1)
    elif isinstance(found, (_Maker, _Dtype, type)):
        raise BadRecord("It is a damaged pickle: a part of an array on its own.")
    elif isinstance(found, dict):
        pairs = [(_plain(k, done, depth - 1), _plain(v, done, depth - 1)) for k, v in found.items()]
        result = type(found)(pairs)
    elif isinstance(found, (list, tuple, set, frozenset)):
        result = type(found)([_plain(element, done, depth - 1) for element in found])
    else:
        return found
    done[id(found)] = result
    return result
