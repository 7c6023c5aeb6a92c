"""Where arrays lie in memory, and whether they can change."""

from typing import Any, Sequence

import numpy as np

ALIGNMENT = 64  # bytes; TensorFlow takes over an array aligned so without a copy


def aligned_empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Returns an uninitialized array, not of objects, that begins at a multiple of 64 bytes.

    The memory that `malloc` returns for large arrays never does.
    """
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes].view(dtype).reshape(shape)


def is_immutable(array: np.ndarray) -> bool:
    """Returns whether an array is read-only, as is everything that it is a view of."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    if isinstance(memory, memoryview):
        return memory.readonly
    return memory is None or isinstance(memory, bytes)
