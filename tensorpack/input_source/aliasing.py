"""Gives TensorFlow arrays that nobody else will write to.

TensorFlow does not copy an array that is fed if its memory begins at a multiple of 64 bytes: an
element of a queue is then the producer's own memory, and a producer that fills one buffer again and
again changes what is in the queue already. Whether a producer will do so cannot be seen from the
array, and afterwards it is too late. So what is enqueued is copied, into memory that TensorFlow
takes over as it is. There is one copy either way: for memory that is not aligned, and what `malloc`
gives for large arrays never is, TensorFlow would have made it, holding the interpreter's lock. An
array that is read-only down to the memory it views is taken as it is.
"""

import numpy as np

from tensorpack.utils.aligned import aligned_empty, stays_as_it_is

__all__ = ["private"]

_SMALL = 4096  # bytes; up to here aligning costs more than a second copy


def private(array: np.ndarray) -> np.ndarray:
    """Returns an array that keeps the values `array` has now, whatever its producer does to it.

    This is `array` itself if `stays_as_it_is`, or if it holds strings, which TensorFlow always
    copies. To have a large array fed without any copy, allocate it aligned, fill it, and call
    `array.setflags(write=False)`.
    """
    if array.dtype.hasobject or stays_as_it_is(array):
        return array
    if array.nbytes <= _SMALL:
        return array.copy()
    copy = aligned_empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy
