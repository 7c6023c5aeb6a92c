"""Pickles an object so that its arrays are apart: they are copied once, to where they are used.

Both ends are processes of one program, so whatever pickles is sent, as what it is. An object in
memory starts at a multiple of 64 bytes::

    pickle | gap | array | gap | array | ...        each array at a multiple of 64 bytes

Small arrays are in the pickle: one that is kept would keep the memory of the whole object.
"""

import copyreg
import functools
import io
import pickle
from typing import Any, List, NamedTuple, Tuple

import numpy as np

from tensorpack.utils.packing.packed_arrays import Rows, aligned_empty

from .start_method import find_unpicklable

_ALIGNMENT = 64  # bytes; TensorFlow takes over an array aligned so without a copy
_SMALL_BYTES = 512
_PROTOCOL = 4  # of Python 3.7
_BY_NAME = "biufcmMSU"  # kinds of dtypes that their text describes


class Packed(NamedTuple):
    """An object that is ready to be written."""

    pickle: bytes
    arrays: List[Tuple[int, Any]]  # where they begin behind the pickle; an array or `Rows`
    nbytes: int  # of all


class _Arrays:
    """What a pickler does with arrays."""

    def __init__(self) -> None:
        self.places: List[Tuple[int, Any]] = []
        self.nbytes = 0

    def reduce(self, array: Any) -> Any:
        dtype = array.dtype
        if dtype.hasobject:
            return array.__reduce_ex__(_PROTOCOL)
        name = dtype.str if dtype.kind in _BY_NAME else dtype
        if array.nbytes <= _SMALL_BYTES:
            array = array.array() if isinstance(array, Rows) else array
            return _small_array, (array.shape, name, array.tobytes())
        start = self.nbytes
        self.places.append((start, array))
        self.nbytes = start + aligned(array.nbytes)
        return _large_array, (array.shape, name, start)


def pack(obj: Any) -> Packed:
    """Packs an object; its arrays are not copied yet.

    Raises TypeError, which names the component that cannot be pickled.
    """
    file, arrays = io.BytesIO(), _Arrays()
    pickler = pickle.Pickler(file, _PROTOCOL)
    reduce = dict.fromkeys((np.ndarray, np.memmap, Rows), arrays.reduce)
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
    data = file.getvalue()
    nbytes = aligned(len(data)) + arrays.nbytes if arrays.places else len(data)
    return Packed(data, arrays.places, nbytes)


def write(packed: Packed, memory: np.ndarray, start: int = 0) -> None:
    """Writes an object to bytes, uint8, from a multiple of 64 bytes on."""
    end = start + len(packed.pickle)
    memory[start:end] = np.frombuffer(packed.pickle, np.uint8)
    begin = start + aligned(len(packed.pickle))
    for place, array in packed.arrays:
        target: np.ndarray = np.ndarray(array.shape, array.dtype, memory, begin + place)
        if isinstance(array, Rows):
            array.fill(target)
        else:
            np.copyto(target, array)


def unpack(data: Any, memory: Any = None, begin: int = 0, copies: bool = False) -> Any:
    """Returns an object of which `data` is the pickle, and whose arrays begin at `begin`.

    Args:
      memory: the bytes that the arrays view, uint8.
      copies: whether arrays are read-only copies instead.

    Raises RuntimeError, which names the class, if one cannot be unpickled.
    """
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.large_array = functools.partial(_copy_of if copies else _view_of, memory, begin)
    try:
        return unpickler.load()
    except Exception as error:
        raise RuntimeError(
            f"An object of {unpickler.latest} can be pickled, but not unpickled: {error!r}."
        ) from error


def aligned(nbytes: int) -> int:
    """Returns the next multiple of 64."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


class _Unpickler(pickle.Unpickler):
    """Puts views in the places of large arrays."""

    large_array: Any  # holds the memory and not this object, which would be a cycle
    latest = ""  # the class that it found last

    def find_class(self, module: str, name: str) -> Any:
        if name == "_large_array" and module == __name__:
            return self.large_array
        self.latest = f"{module}.{name}"
        return super().find_class(module, name)


def _large_array(shape: Any, dtype: Any, start: int) -> np.ndarray:
    raise RuntimeError("An array that was packed is read without its memory: use unpack().")


def _small_array(shape: Any, dtype: Any, data: bytes) -> np.ndarray:
    return np.ndarray(shape, dtype, data)


def _view_of(memory: Any, begin: int, shape: Any, dtype: Any, start: int) -> np.ndarray:
    return np.ndarray(shape, dtype, memory, begin + start)


def _copy_of(memory: Any, begin: int, shape: Any, dtype: Any, start: int) -> np.ndarray:
    """A copy that is read-only for good, as what is in shared memory is."""
    copy = aligned_empty(shape, dtype)
    np.copyto(copy, _view_of(memory, begin, shape, dtype, start))
    for array in (copy.base, copy):
        if array is not None:
            array.setflags(write=False)
    return copy
