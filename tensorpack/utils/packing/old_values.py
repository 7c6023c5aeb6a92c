"""Decodes what old tensorpack and old numpy wrote, by msgpack or by pickle.

The bytes have neither version nor checksum, so damage is found only where it breaks their
structure. No code runs: of what a pickle names, only the few functions are found that make
containers, numbers, text, bytes and numpy arrays, and numpy itself sees no dtype or state of it.
"""

import collections
import io
import pickle
from typing import Any, Dict, Tuple

import numpy as np

from ..optional import msgpack_codec, require
from .packed_arrays import dtype_of, nbytes_of


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
    is_pickle = kind_of_old(value) == "pickle"
    if not is_pickle:
        require("msgpack")
    try:
        try:
            return _unpickled(value) if is_pickle else _unpacked(value)
        except RefusedRecord:
            if not (trusted and is_pickle):
                raise
            return pickle.loads(value, encoding="latin1")
    except (BadRecord, RefusedRecord):
        raise
    except Exception as error:  # damaged bytes can make it fail in almost every way
        raise BadRecord(
            f"It is damaged, or not of tensorpack: {error!s:.99} ({type(error).__name__})"
        ) from error


def _unpacked(value: bytes) -> Any:
    return msgpack_codec().unpackb(
        value, object_hook=_restore, ext_hook=_no_extension, raw=False, strict_map_key=False
    )


def _restore(found: Dict[Any, Any]) -> Any:
    """Returns the array, scalar or complex number that msgpack_numpy wrote as a dict."""
    data: Any = found.get(b"data")
    if b"data" in found and b"nd" in found and b"type" in found:
        if found.get(b"kind") in (b"O", "O"):
            return _unpickled(data)
        shape = found.get(b"shape") if found[b"nd"] else ()
        array = _array_of(data, _plain_dtype(found[b"type"]), shape)
        return array if found[b"nd"] else array[()]
    if b"data" in found and found.get(b"complex") is True:
        return complex(data.decode("ascii") if isinstance(data, bytes) else data)
    return found


def _no_extension(code: int, data: bytes) -> Any:
    raise BadRecord(f"It has a msgpack extension {code}, which tensorpack did not write.")


def _plain_dtype(name: Any) -> np.dtype:
    name = name.decode("latin1") if isinstance(name, bytes) else name
    try:
        return dtype_of(name)
    except ValueError as error:
        raise RefusedRecord(
            f"It has an array of dtype {name!r:.80}, and not of plain numbers, text or objects: "
            "write the file again where it can be read."
        ) from error


def _array_of(data: Any, dtype: np.dtype, shape: Any, order: Any = "C") -> np.ndarray:
    """Returns a new array; `order` is that of its bytes, or its list of objects: "C" or "F"."""
    sizes = tuple(shape)
    if dtype.hasobject:
        flat = np.empty(len(data), object)
        for index, each in enumerate(data):
            flat[index] = each
    else:
        data = data.encode("latin1") if isinstance(data, str) else data
        flat = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
    if nbytes_of(dtype, sizes) != flat.nbytes:
        raise BadRecord(f"An array of {dtype} {sizes} does not have as many bytes.")
    return flat.reshape(sizes, order=order).copy()


class _Unpickler(pickle.Unpickler):
    """Finds nothing but what makes plain values, or stands for it."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise RefusedRecord(
                f"It is a pickle that needs {module:.99}.{name:.99}, which could run any code: "
                "only containers, numbers, text, bytes and numpy arrays are read. If you trust "
                "the file, read it with allow_pickle=True, or in a script of your own."
            )
        return _KNOWN[module, name]


def _unpickled(value: bytes) -> Any:
    return _finished(_Unpickler(io.BytesIO(value), encoding="latin1").load())


def _finished(found: Any) -> Any:
    """Returns an object with arrays in the place of what stands for them."""
    if isinstance(found, _Array):
        found = found.made
    if isinstance(found, np.ndarray):
        if found.dtype.hasobject:
            for place, each in np.ndenumerate(found):
                found[place] = _finished(each)
    elif isinstance(found, list):
        found[:] = map(_finished, found)
    elif isinstance(found, dict):
        found.update([(key, _finished(each)) for key, each in found.items()])
    elif isinstance(found, tuple):
        return tuple(map(_finished, found))
    elif not isinstance(found, _LEAVES):
        raise BadRecord(f"It is damaged: a {type(found).__name__} is in a wrong place.")
    return found


class _Array:
    """What numpy's `_reconstruct` makes; the array is `made` when its state is set."""

    made: np.ndarray

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, data = state
        self.made = _array_of(data, dtype.made, shape, "F" if is_fortran else "C")


class _Dtype:
    """What `numpy.dtype` makes."""

    def __init__(self, name: Any, *_: Any) -> None:
        self._name = name
        self.made = np.dtype(object) if name in ("O", "O4", "O8") else _plain_dtype(f"|{name}")

    def __setstate__(self, state: Any) -> None:
        _, order, *others = state
        if not self.made.hasobject:
            if self._name[:1] in "mM" or any(each is not None for each in others[:3]):
                raise RefusedRecord(
                    f"It has an array of dtype {self._name!r:.80}, with more to it."
                )
            self.made = _plain_dtype((order if order in ("<", ">") else "|") + self._name)


def _from_buffer(data: Any, dtype: _Dtype, shape: Any, order: Any, axes: Any = None) -> Any:
    """Makes an array as a pickle of protocol 5 has it."""
    made = _array_of(data, dtype.made, shape, "F" if order == "F" else "C")
    return made if order != "K" or axes is None else made.transpose(axes)


def _scalar(dtype: _Dtype, data: Any) -> Any:
    return _array_of(data, dtype.made, ())[()]


def _encoded(text: Any = "", _: Any = None) -> bytes:
    """Makes bytes, which a pickle of protocol 2 has as text."""
    return text if isinstance(text, bytes) else text.encode("latin1")


_LEAVES = (type(None), int, float, complex, str, bytes, bytearray, set, frozenset, np.generic)
_KNOWN: Dict[Tuple[str, str], Any] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): None,  # only ever handed to `_reconstruct`
    ("_codecs", "encode"): _encoded,
    ("collections", "OrderedDict"): collections.OrderedDict,
}
for _core in "numpy.core", "numpy._core":
    _KNOWN[f"{_core}.multiarray", "_reconstruct"] = _Array
    _KNOWN[f"{_core}.multiarray", "scalar"] = _scalar
    _KNOWN[f"{_core}.numeric", "_frombuffer"] = _from_buffer
for _builtins in "builtins", "__builtin__":
    _KNOWN[_builtins, "bytes"] = _encoded
    for _kind in complex, set, frozenset:
        _KNOWN[_builtins, _kind.__name__] = _kind
