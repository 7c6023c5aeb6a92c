"""A list in shared memory, which worker processes read without copies of their own.

A forked process shares the memory of a Python list only until Python writes reference counts into
it. This list holds no Python objects; an element is built when it is asked for.
"""

import weakref
from multiprocessing.context import get_spawning_popen
from typing import Any, Callable, Iterable, List, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.packing.packed_arrays import ALIGNMENT

from ._processes.pickled import Packed, unpack
from ._processes.shared_memory import SharedFile

_LEAST_BYTES = 1 << 20


class SharedList(Sequence[Any]):
    """Elements in memory that all processes share; made once, and never changed.

    Give it to `DataFromList` in place of a large list that several processes are to read.

    Arrays in an element are read-only views of the memory, which has no name, and is gone with the
    last process and the last array that use it. When pickled, except to start a process, it takes
    its elements along.
    """

    def __init__(self, elements: Iterable[Any]) -> None:
        """Takes an iterable of what `MultiProcessRunner` can send, one by one.

        Raises OSError if there is not enough shared memory.
        """
        self._attach(SharedFile())
        starts: List[int] = []
        pickles: List[int] = []  # where they begin
        end = capacity = 0
        memory = np.empty(0, np.uint8)
        for index, element in enumerate(elements):
            try:
                packed = Packed(element)
            except TypeError as error:
                raise TypeError(f"Element {index} of the list: {error}") from error
            if end + packed.nbytes > capacity:
                capacity = max(_LEAST_BYTES, capacity + capacity // 2, end + packed.nbytes)
                self._file.resize(capacity)
                memory = np.frombuffer(self._file.view(capacity, writable=True), np.uint8)
            packed.write(memory[end:])
            starts.append(end)
            pickles.append(end + packed.begin)
            end += -(-packed.nbytes // ALIGNMENT) * ALIGNMENT
        if end:
            self._file.resize(end)  # what is too much goes back
        self._set(end, np.array(starts, np.int64), np.array(pickles, np.int64))

    def _attach(self, file: SharedFile) -> None:
        self._file = file
        weakref.finalize(self, file.close).atexit = False

    def _set(self, nbytes: int, starts: np.ndarray, pickles: np.ndarray) -> None:
        self._starts, self._pickles = starts, pickles
        self._memory = np.empty(0, np.uint8)
        if nbytes:
            self._memory = np.frombuffer(self._file.view(nbytes, writable=False), np.uint8)

    @property
    def nbytes(self) -> int:
        """How much memory the elements take, in all processes together."""
        return self._memory.nbytes

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Union[int, slice]) -> Any:
        """Returns an element; or a list of them."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        start, begin = self._starts[number], self._pickles[number]
        end = self._starts[number + 1] if number + 1 < len(self) else self.nbytes
        return unpack(self._memory[begin:end], self._memory[start:])

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        if get_spawning_popen() is None:
            return SharedList, (list(self),)
        return _rebuild, (self._file, self.nbytes, self._starts, self._pickles)


def _rebuild(file: SharedFile, *parts: Any) -> SharedList:
    shared = SharedList.__new__(SharedList)
    shared._attach(file)
    shared._set(*parts)
    return shared
