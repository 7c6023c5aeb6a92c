"""Pickles an object so that its arrays are apart: they are copied once, to where they are used.

Both ends are processes of one program, so whatever pickles is sent, as what it is. An object in
memory starts at a multiple of 64 bytes::

    array | gap | array | gap | ... | pickle        each array at a multiple of 64 bytes

Small arrays are in the pickle: one that is kept would keep the memory of the whole object.
"""

import copyreg
import functools
import io
import pickle
from typing import Any, List, Tuple

import numpy as np

from tensorpack.utils.packing.packed_arrays import aligned, aligned_empty

from .._stack import Rows
from .start_method import find_unpicklable

_SMALL_BYTES = 512
_PROTOCOL = 4  # of Python 3.7
_BY_NAME = "biufcmMSU"  # kinds of dtypes that their text describes


class Packed:
    """An object that is ready to be written: its arrays, which are not copied yet, and its pickle.

    Attributes:
      arrays: pairs of where one begins, and an array or `Rows`.
      begin: where the pickle begins, behind them.
      nbytes: of all.
    """

    def __init__(self) -> None:
        self.arrays: List[Tuple[int, Any]] = []
        self.begin = self.nbytes = 0
        self.pickle = b""

    def reduce(self, array: Any) -> Any:
        """Takes an array out of the pickle; returns what is there instead."""
        dtype = array.dtype
        if dtype.hasobject:
            return array.__reduce_ex__(_PROTOCOL)
        name = dtype.str if dtype.kind in _BY_NAME else dtype
        if array.nbytes <= _SMALL_BYTES:
            array = array.array() if isinstance(array, Rows) else array
            return _small_array, (array.shape, name, array.tobytes())
        start = self.begin
        self.arrays.append((start, array))
        self.begin = start + aligned(array.nbytes)
        return _large_array, (array.shape, name, start)


def pack(obj: Any) -> Packed:
    """Packs an object. Raises TypeError, which names the component that cannot be pickled."""
    packed, file = Packed(), io.BytesIO()
    pickler = pickle.Pickler(file, _PROTOCOL)
    reduce = dict.fromkeys((np.ndarray, np.memmap, Rows), packed.reduce)
    pickler.dispatch_table = {**copyreg.dispatch_table, **reduce}
    try:
        pickler.dump(obj)
    except Exception as error:
        part = find_unpicklable(obj, "")
        if part is None:
            raise
        where = f"{part.path}: " if part.path else ""
        what = f"a {type(part.value).__name__} cannot be pickled"
        raise TypeError(f"{where}{what}, so no process can get it ({part.reason}).") from error
    packed.pickle = file.getvalue()
    packed.nbytes = packed.begin + len(packed.pickle)
    return packed


def write(packed: Packed, memory: np.ndarray) -> None:
    """Writes an object to bytes, uint8, that begin at a multiple of 64."""
    for start, array in packed.arrays:
        target: np.ndarray = np.ndarray(array.shape, array.dtype, memory, start)
        if isinstance(array, Rows):
            array.fill(target)
        else:
            np.copyto(target, array)
    memory[packed.begin : packed.nbytes] = np.frombuffer(packed.pickle, np.uint8)


def unpack(data: Any, memory: Any = None, copies: bool = False) -> Any:
    """Returns an object of which `data` is the pickle; bytes that follow it do not matter.

    Its arrays view the `memory`, uint8, where it was written, or are read-only copies. Raises
    RuntimeError, which names the class, if one cannot be unpickled.
    """
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.large_array = functools.partial(_copy_of if copies else _view_of, memory)
    try:
        return unpickler.load()
    except Exception as error:
        raise RuntimeError(
            f"An object of {unpickler.latest} can be pickled, but not unpickled: {error!r}."
        ) from error


class _Unpickler(pickle.Unpickler):
    """Puts views in the places of large arrays."""

    large_array: Any  # holds the memory and not this object, which would be a cycle
    latest = ""  # the class that it found last

    def find_class(self, module: str, name: str) -> Any:
        if name == "_large_array" and module == __name__:
            return self.large_array
        self.latest = f"{module}.{name}"
        return super().find_class(module, name)


def _large_array(shape: Any, dtype: Any, start: int) -> None:
    """Its name stands for `_Unpickler.large_array`."""


def _small_array(shape: Any, dtype: Any, data: bytes) -> np.ndarray:
    return np.ndarray(shape, dtype, data)


def _view_of(memory: Any, shape: Any, dtype: Any, start: int) -> np.ndarray:
    return np.ndarray(shape, dtype, memory, start)


def _copy_of(memory: Any, shape: Any, dtype: Any, start: int) -> np.ndarray:
    """A copy that is read-only for good, as what is in shared memory is."""
    copy = aligned_empty(shape, dtype)
    np.copyto(copy, _view_of(memory, shape, dtype, start))
    for array in (copy.base, copy):
        if array is not None:
            array.setflags(write=False)
    return copy
