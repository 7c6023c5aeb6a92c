"""Decodes what old tensorpack and old numpy wrote, by msgpack or by pickle.

The bytes have neither version nor checksum, so damage is found only where it breaks their
structure. No code runs: a pickle finds only the functions of a list, which make containers,
numbers, text, bytes and arrays. Arrays are made of stand-ins, for numpy itself crashes of a wrong
list of objects, and can be led by the state of a dtype to take bytes for pointers to objects.
"""

import collections
import copy
import io
import pickle
from typing import Any, Dict

import numpy as np

from ..optional import msgpack_codec


class BadRecord(Exception):
    """Bytes are damaged. The caller, who knows where they are from, raises an error about it."""


class RefusedRecord(Exception):
    """Bytes may be whole but are not decoded; the caller raises `ValueError`, and skips none."""


def kind_of_old(value: bytes) -> str:
    """Returns "pickle" (of protocol 2 to 5) or "msgpack" if the bytes begin so, or else ""."""
    if len(value) > 2 and value[0] == 0x80 and 2 <= value[1] <= 5:
        return "pickle"
    is_container = value[:1] and (0x80 <= value[0] < 0xA0 or 0xDC <= value[0] < 0xE0)
    return "msgpack" if is_container else ""


def decode_old(value: bytes, trusted: bool = False) -> Any:
    """Returns the object in bytes that are a pickle, or else msgpack of tensorpack of 2017.

    That can be lists, tuples, dicts, sets, numbers, text, bytes, and numpy's arrays and scalars,
    also arrays of objects. Bytes of Python 2 become text, of which no character is lost. Anything
    else that a pickle names is an error and is not even imported, unless it is `trusted`: then
    Python unpickles it, which can run any code.
    """
    unpackb = None if kind_of_old(value) == "pickle" else msgpack_codec().unpackb
    try:
        if unpackb is None:
            return _unpickled(value, trusted)
        return unpackb(value, object_hook=_of_msgpack_numpy, raw=False, strict_map_key=False)
    except RefusedRecord:
        raise
    except Exception as error:  # damaged bytes can make it fail in almost every way
        raise BadRecord(
            f"It is damaged, or not of tensorpack: {error!s:.99} ({type(error).__name__})"
        ) from error


def _of_msgpack_numpy(obj: Dict[Any, Any]) -> Any:
    """Returns the array, scalar or complex number that msgpack_numpy wrote as a dict."""
    data: Any = obj.get(b"data")
    if obj.keys() >= {b"data", b"nd", b"type"}:
        if obj.get(b"kind") in (b"O", "O"):
            return _unpickled(data)
        name = obj[b"type"]
        name = str(name, "latin1") if isinstance(name, bytes) else name
        dtype = np.dtype(name if isinstance(name, str) else "V")  # "V": a list, of fields
        if dtype.kind in "OV":
            raise _refused(name)
        array = _array_of(data, dtype, obj[b"shape"] if obj[b"nd"] else ())
        return array.copy() if obj[b"nd"] else array[()]
    if data is not None and obj.get(b"complex") is True:
        return complex(str(data, "ascii") if isinstance(data, bytes) else data)
    return obj


def _refused(dtype: Any) -> RefusedRecord:
    return RefusedRecord(f"It has an array of dtype {dtype!r:.80}: write it as plain numbers.")


def _array_of(data: Any, dtype: np.dtype, shape: Any, order: Any = "C") -> np.ndarray:
    """Returns an array of bytes or a list of objects, whose axes have this order: "C" or "F"."""
    if dtype.hasobject:
        flat = np.empty(len(data), object)
        for index, element in enumerate(data):
            flat[index] = element
    else:
        flat = np.frombuffer(data.encode("latin1") if isinstance(data, str) else data, dtype)
    return flat.reshape(shape, order=order)


def _unpickled(value: bytes, trusted: bool = False) -> Any:
    try:
        # A deep copy has writable arrays in the place of what stands for them.
        return copy.deepcopy(_Unpickler(io.BytesIO(value), encoding="latin1").load())
    except RefusedRecord:
        if not trusted:
            raise
    return pickle.loads(value, encoding="latin1")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        path = f"{module}.{name}".replace("._core.", ".core.").replace("__builtin__", "builtins")
        if path not in _FUNCTIONS:
            raise RefusedRecord(
                f"It is a pickle that needs {module:.99}.{name:.99}, which could run any code: "
                "only containers, numbers, text, bytes and numpy arrays are read. If you trust "
                "the file, read it with allow_pickle=True, or in a script of your own."
            )
        return _FUNCTIONS[path]


class _Array:
    """What numpy's `_reconstruct` returns; its state has the array."""

    array: np.ndarray

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, data = state
        self.array = _array_of(data, dtype.dtype, shape, "F" if is_fortran else "C")

    def __deepcopy__(self, memo: Any) -> np.ndarray:
        return copy.deepcopy(self.array, memo)


class _Dtype:
    """What `numpy.dtype` returns."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.dtype = np.dtype(str(name))

    def __setstate__(self, state: Any) -> None:
        if self.dtype.kind in "mMV" or state[2:5] != (None, None, None):
            raise _refused(self.dtype.str)
        self.dtype = self.dtype.newbyteorder(state[1])

    def __deepcopy__(self, memo: Any) -> np.dtype:
        return self.dtype


def _from_buffer(data: Any, dtype: _Dtype, shape: Any, order: Any, axes: Any = None) -> Any:
    array = _array_of(data, dtype.dtype, shape, "F" if order == "F" else "C")
    return array if order != "K" or axes is None else array.transpose(axes)


_FUNCTIONS: Dict[str, Any] = {
    "numpy.dtype": _Dtype,
    "numpy.ndarray": _Array,  # handed to `_reconstruct`
    "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
    "numpy.core.multiarray.scalar": lambda dtype, data: _array_of(data, dtype.dtype, ())[()],
    "numpy.core.numeric._frombuffer": _from_buffer,
    "_codecs.encode": lambda text, _: text.encode("latin1"),  # bytes, in protocol 2
    "collections.OrderedDict": collections.OrderedDict,
    **{f"builtins.{kind.__name__}": kind for kind in (bytes, complex, set, frozenset)},
}
