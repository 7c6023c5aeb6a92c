"""Where arrays lie in memory, and arrays whose rows are put together when they are written."""

from typing import Any, Sequence

import numpy as np

_ALIGNMENT = 64  # bytes; TensorFlow takes over an array aligned so without a copy


class Rows:
    """An array whose rows are separate until they are written; it is read as one array.

    There is at least one row. All have the same shape, and are converted to `dtype`.
    """

    def __init__(self, arrays: Sequence[np.ndarray], dtype: np.dtype) -> None:
        self.arrays = list(arrays)
        self.dtype = np.dtype(dtype)
        self.shape = (len(self.arrays), *self.arrays[0].shape)
        self.nbytes = self.dtype.itemsize * len(self.arrays) * self.arrays[0].size

    def fill(self, array: np.ndarray) -> None:
        """Writes the rows into an array of this shape and dtype."""
        for row, part in enumerate(self.arrays):
            array[row] = part

    def array(self) -> np.ndarray:
        """The rows as a new array in C order."""
        array: np.ndarray = np.empty(self.shape, self.dtype)
        self.fill(array)
        return array


def aligned(nbytes: int) -> int:
    """Returns the next multiple of 64."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def aligned_empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Returns an uninitialized array, not of objects, that begins at a multiple of 64 bytes.

    The memory that `malloc` returns for large arrays never does.
    """
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + nbytes].view(dtype).reshape(shape)


def stays_as_it_is(array: np.ndarray) -> bool:
    """Returns whether an array is read-only, as is everything that it is a view of."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    if isinstance(memory, memoryview):
        return memory.readonly
    return memory is None or isinstance(memory, bytes)
