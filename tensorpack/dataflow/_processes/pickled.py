"""Pickles an object so that its arrays are apart: they are copied once, to where they are used.

Both ends are processes of one program, so whatever pickles is sent, as what it is. An object in
memory starts at a multiple of 64 bytes::

    array | gap | array | gap | ... | pickle        each array at a multiple of 64 bytes

Small arrays are in the pickle: a consumer that keeps one would keep the memory of the whole object.
"""

import copyreg
import io
import pickle
from typing import Any, List, Tuple

import numpy as np

from tensorpack.utils.packing.packed_arrays import ALIGNMENT

from .._stack import DeferredStack
from .start_method import find_unpicklable

_SMALL_BYTES = 512
_PROTOCOL = 4  # of Python 3.7
_BY_NAME = "biufcmMSU"  # kinds of dtypes that their text describes, but those of other libraries
# How scalars are pickled; numpy's own way takes twice as long.
_SCALARS = {np.dtype(code).type: lambda x: (type(x), (x.item(),)) for code in "?Bilfd"}


class Packed:
    """An object that is ready to be written: its arrays, which are not copied yet, and its pickle.

    Attributes:
      arrays: pairs of where one begins, and an array or `DeferredStack`.
      begin: where the pickle begins, behind them.
      nbytes: of all.
    """

    def __init__(self, obj: Any) -> None:
        """Raises TypeError, which names the component that cannot be pickled."""
        self.arrays: List[Tuple[int, Any]] = []
        self.begin = 0
        file = io.BytesIO()
        pickler = pickle.Pickler(file, _PROTOCOL)
        arrays = dict.fromkeys((np.ndarray, np.memmap, DeferredStack), self._reduce)
        pickler.dispatch_table = {**_SCALARS, **copyreg.dispatch_table, **arrays}
        try:
            pickler.dump(obj)
        except Exception as error:
            part = find_unpicklable(obj, "")
            if part is None:
                raise
            path, value, reason = part
            what = f"{path}: " * bool(path) + f"a {type(value).__name__} cannot be pickled"
            raise TypeError(f"{what}, so no process can get it ({reason}).") from error
        self.pickle = file.getvalue()
        self.nbytes = self.begin + len(self.pickle)

    def _reduce(self, array: Any) -> Any:
        """Returns how to make an array, which is not in the pickle if it is large."""
        dtype, start = array.dtype, self.begin
        if dtype.hasobject:
            return array.__reduce_ex__(_PROTOCOL)
        name = dtype.str if dtype.kind in _BY_NAME and dtype.isbuiltin != 2 else dtype
        if array.nbytes <= _SMALL_BYTES:
            array = array.array() if isinstance(array, DeferredStack) else array
            return np.ndarray, (array.shape, name, array.tobytes())
        self.arrays.append((start, array))
        self.begin = start + -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return _large_array, (array.shape, name, start)

    def write(self, memory: np.ndarray) -> None:
        """Writes the object to bytes, uint8, that begin at a multiple of 64."""
        for start, array in self.arrays:
            target: np.ndarray = np.ndarray(array.shape, array.dtype, memory, start)
            if isinstance(array, DeferredStack):
                array.fill(target)
            else:
                np.copyto(target, array)
        memory[self.begin : self.nbytes] = np.frombuffer(self.pickle, np.uint8)


def unpack(data: Any, memory: Any = None) -> Any:
    """Returns an object of which `data` is the pickle; bytes that follow it do not matter.

    Its arrays view the `memory`, uint8, where it was written. Raises RuntimeError, which names the
    class, if one cannot be unpickled.
    """
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.large_array = lambda shape, dtype, start: np.ndarray(shape, dtype, memory, start)
    try:
        return unpickler.load()
    except Exception as error:
        raise RuntimeError(
            f"An object of {'.'.join(unpickler.latest)} can be pickled, but not unpickled: "
            f"{error!r}."
        ) from error


class _Unpickler(pickle.Unpickler):
    """Puts views in the places of large arrays."""

    large_array: Any  # holds the memory and not this object, which would be a cycle
    latest: Tuple[str, ...] = ()  # the class that it found last

    def find_class(self, module: str, name: str) -> Any:
        if name == "_large_array" and module == __name__:
            return self.large_array
        self.latest = module, name
        return super().find_class(module, name)


def _large_array(shape: Any, dtype: Any, start: int) -> None:
    """Its name stands for `_Unpickler.large_array`."""
