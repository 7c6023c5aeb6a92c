"""Reads values that tensorpack pickled, and nothing else that a pickle may hold.

This is the only module that reads pickles, and only where `allow_pickle=True` was given. Of what a
pickle can name it knows sets, complex numbers, ordered dicts, and numpy's arrays and scalars; for
the last two it has makers of its own, so that numpy never sees what the pickle says. Anything
else is an error and is not even imported.
"""

import collections
import importlib
import io
import pickle
from typing import Any, Dict, Tuple

import numpy as np

from .arrays import array_of, plain_dtype
from .errors import BadRecord, RefusedRecord

__all__ = ["looks_like_pickle", "unpickle"]

_DEPTH = 64  # of containers in containers


def looks_like_pickle(value: bytes) -> bool:
    """Whether the bytes begin as a pickle of the protocols 2 to 5 does."""
    return len(value) > 2 and value[0] == 0x80 and 2 <= value[1] <= 5


def unpickle(value: bytes) -> Any:
    """Returns the object that was pickled.

    Raises:
      RefusedRecord: it is none of the kinds named above.
      BadRecord: the bytes are damaged.
    """
    try:
        _check_memory(value)
        # Bytes of Python 2 become text, of which no character is lost.
        found = _Unpickler(io.BytesIO(value), encoding="latin1").load()
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
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise RefusedRecord(
                f"It is a pickle that needs {module}.{name}. Only lists, tuples, dicts, sets, "
                "numbers, text, bytes and plain numpy arrays are read from a pickle: write the "
                "file anew where it was made."
            ) from None


class _Sealed:
    """A maker that a pickle can call. The class itself, too, answers to what sets a state."""

    def __setstate__(self, state: Any) -> None:
        raise BadRecord("It is a damaged pickle: something has a state that never has one.")


class _Dtype(_Sealed):
    """Made where the pickle says `numpy.dtype`."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.plain = plain_dtype(name)

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[2:5] != (None, None, None):
            raise RefusedRecord("It has an array with fields, which is not read.")
        if state[1] in ("<", ">"):
            self.plain = self.plain.newbyteorder(state[1])


class _Array(_Sealed):
    """Made where the pickle says `_reconstruct`; holds the array after its state was set."""

    def __init__(self, *_: Any) -> None:
        self.value: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, data = state
        if isinstance(data, list):
            raise RefusedRecord("It has an array of objects, which is not read.")
        self.value = array_of(_bytes(data), _plain_of(dtype), shape, "F" if is_fortran else "C")


class _FromBuffer(_Sealed):
    """Makes an array where the pickle says `_frombuffer`, which protocol 5 does."""

    def __new__(cls, data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
        made = _Array()
        made.value = array_of(data, _plain_of(dtype), shape, "F" if order == "F" else "C")
        if order == "K" and axes is not None:
            made.value = made.value.transpose(axes)
        return made


class _Scalar(_Sealed):
    """Makes a numpy scalar."""

    def __new__(cls, dtype: Any, data: Any) -> Any:
        return array_of(_bytes(data), _plain_of(dtype), ())[()]


class _Encoded(_Sealed):
    """Makes bytes where a pickle of protocol 2 has them as text."""

    def __new__(cls, text: Any, encoding: Any = "latin1") -> Any:
        if encoding != "latin1":
            raise BadRecord(f"It is a damaged pickle: bytes as {encoding!r:.40}.")
        return text.encode("latin1")


class _EmptyBytes(_Sealed):
    """Makes the empty bytes, which a pickle of protocol 2 has as a call."""

    def __new__(cls) -> Any:
        return b""


def _plain_of(dtype: Any) -> np.dtype:
    if not isinstance(dtype, _Dtype):
        raise BadRecord("It is a damaged pickle: an array without a dtype.")
    return dtype.plain


def _bytes(data: Any) -> Any:
    return data.encode("latin1") if isinstance(data, str) else data


def _known() -> Dict[Tuple[str, str], Any]:
    known: Dict[Tuple[str, str], Any] = {
        ("numpy", "dtype"): _Dtype,
        ("numpy", "ndarray"): "numpy.ndarray",  # only ever handed to `_reconstruct`
        ("_codecs", "encode"): _Encoded,
        ("collections", "OrderedDict"): collections.OrderedDict,
    }
    for core in "numpy.core", "numpy._core":
        known[f"{core}.multiarray", "_reconstruct"] = _Array
        known[f"{core}.multiarray", "scalar"] = _Scalar
        known[f"{core}.numeric", "_frombuffer"] = _FromBuffer
    for builtins in "builtins", "__builtin__":
        known[builtins, "bytes"] = _EmptyBytes
        for kind in (set, frozenset, complex):
            known[builtins, kind.__name__] = kind
    return known


_KNOWN = _known()


def _plain(found: Any, done: Dict[int, Any], depth: int) -> Any:
    """Puts arrays in the place of what made them; `done` has what was met before, by its id."""
    if id(found) in done:
        return done[id(found)]
    if depth == 0:
        raise BadRecord("It is nested too deep, or in itself.")
    if isinstance(found, _Array):
        result = found.value
        if result is None:
            raise BadRecord("It is a damaged pickle: an array without a state.")
    elif isinstance(found, (_Sealed, type)):
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
