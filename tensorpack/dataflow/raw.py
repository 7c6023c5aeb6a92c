"""Flows from objects in memory: lists, iterables, generators, queues, which copy no datapoints; and
from random arrays.
"""

import itertools
import math
from queue import Empty
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count, as_count_or_none
from tensorpack.utils.rng import rng_state

from ._flow import endless, not_a_state
from .base import DataFlow, DataFlowTerminated, RNGDataFlow, UnknownLength

_POLL_SECONDS = 0.1


class DataFromList(RNGDataFlow):
    """Yields the elements of a list, in a new random order for each pass unless told otherwise.

    >>> list(DataFromList([[1, "a"], [2, "b"]], shuffle=False))
    [[1, 'a'], [2, 'b']]
    """

    # In `_position`: the random stream before the pass, and how many were yielded.
    _STATE = dict.fromkeys(["length", "rng", "count"])
    _INNER = ("rng",)

    def __init__(self, lst: Any, shuffle: bool = True) -> None:
        """Takes anything with a length and integer indices, which is left as it is; for another
        iterable use `DataFromIterable`.
        """
        self.lst, self.shuffle = lst, shuffle

    def __len__(self) -> int:
        return len(self.lst)

    def __iter__(self) -> Iterator[Any]:
        begin = rng_state(self.rng)
        order: Sequence[int] = range(len(self.lst))
        if self.shuffle:
            order = self.rng.permutation(len(self.lst)).data  # of ints, 8 bytes each
        _, first = self._take_loaded() or (None, 0)
        self._position = begin, first
        return self._pass(begin, order, first)

    def _reader(self) -> Callable[[int], Any]:
        """Returns what gives the elements of a pass by index."""
        return self.lst.__getitem__

    def _pass(self, begin: Dict[str, Any], order: Sequence[int], first: int) -> Iterator[Any]:
        read = self._reader()
        for count, index in enumerate(order[first:], first + 1):
            datapoint = read(index)
            self._position = begin, count
            yield datapoint

    def _first_position(self) -> Tuple[Any, ...]:
        return rng_state(self.rng), 0

    def _save_position(self, begin: Dict[str, Any], count: int) -> Tuple[Any, ...]:
        return len(self.lst), begin, count

    def _restore_position(self, length: Any, begin: Any, count: Any) -> Tuple[Any, ...]:
        if length != len(self.lst):
            why = f"its list had {length} datapoints, this one has {len(self.lst)}"
            raise not_a_state(self, why)
        return begin, count


class DataFromIterable(DataFlow):
    """Yields the datapoints of an iterable.

    >>> list(DataFromIterable(zip([1, 2], "ab")))
    [(1, 'a'), (2, 'b')]

    An iterator, such as an open generator, can be read only once: all passes continue one
    another, and a pass after its end is an error.
    """

    _used_up = False

    def __init__(self, iterable: Iterable[Any]) -> None:
        """Takes what gives the datapoints of a pass each time it is iterated, with their length."""
        self._iterable: Any = iterable

    def __len__(self) -> int:
        try:
            return len(self._iterable)
        except TypeError as error:  # also of loaders that have a `__len__` but no length
            name = type(self).__name__
            raise UnknownLength(f"The length of {name} is not known: {error}.") from error

    def __iter__(self) -> Iterator[Any]:
        source = self._open()
        read_once = source is self._iterable
        if read_once and self._used_up:
            raise RuntimeError(
                f"The {type(source).__name__} given to {type(self).__name__} has ended and cannot "
                "begin again. For more than one pass, give DataFromGenerator the function that "
                "makes it, not its result."
            )
        # Not `yield from`: an abandoned pass must not close a generator that another continues.
        for datapoint in source:  # noqa: UP028
            yield datapoint
        self._used_up = read_once

    def _open(self) -> Iterator[Any]:
        return iter(self._iterable)


class DataFromGenerator(DataFromIterable):
    """Yields the datapoints of a generator function, which is called again for each pass.

    >>> list(DataFromGenerator(lambda: ([i] for i in range(100)), size=3))
    [[0], [1], [2]]

    A generator object is taken as well, within the limits of `DataFromIterable`.
    """

    def __init__(
        self, gen: Union[Callable[[], Iterable[Any]], Iterable[Any]], size: Optional[int] = None
    ) -> None:
        """
        Args:
          gen: a function without arguments that returns an iterable, or an iterable.
          size: the number of datapoints in a pass, which stops there. None if the generator alone
            decides.
        """
        super().__init__(gen)  # type: ignore[arg-type]
        self._size = as_count_or_none(self, "size", size, 0)

    def __len__(self) -> int:
        return super().__len__() if self._size is None else self._size

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(super().__iter__(), self._size)

    def _open(self) -> Iterator[Any]:
        return iter(self._iterable() if callable(self._iterable) else self._iterable)


class DataFromQueue(DataFlow):
    """Yields what `queue.get()` returns, forever; all passes take from the same queue. A pass that
    waits for it ends when the flow is closed, if `get` takes a time-out, as that of `queue.Queue`.

    >>> from queue import Queue
    >>> queue = Queue()
    >>> queue.put([1])
    >>> next(iter(DataFromQueue(queue)))
    [1]
    """

    seeded = False  # the producer does not start again with this process

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self._closed = 0  # how often

    def __len__(self) -> int:
        raise endless(self)

    def __iter__(self) -> Iterator[Any]:
        return self._pass(self._closed)

    def _pass(self, closed: int) -> Iterator[Any]:
        options = {"timeout": _POLL_SECONDS} if hasattr(self.queue, "get_nowait") else {}
        while True:
            try:
                yield self.queue.get(**options)
            except Empty:
                if not options:
                    raise
                if closed != self._closed:
                    raise DataFlowTerminated("DataFromQueue was closed during this pass.") from None

    def close(self) -> None:
        self._closed += 1


class FakeData(RNGDataFlow):
    """Yields lists of random arrays, evenly distributed over a range of values."""

    _STATE = {"rng": None, "count": 0}  # the random stream before the pass, and how many yielded
    _INNER = ("rng",)

    def __init__(
        self,
        shapes: Sequence[Sequence[int]],
        size: int = 1000,
        random: bool = True,
        dtype: Any = "float32",
        domain: Union[Tuple[float, float], Sequence[Tuple[float, float]]] = (0, 1),
    ) -> None:
        """
        Args:
          shapes: the shape of each component; `[]` is a scalar.
          size: the number of datapoints in a pass.
          random: False to yield the same arrays every time, in every pass. Writing into them
            changes all later datapoints.
          dtype: of all components, or a list with one for each: bool, integer or floating point.
          domain: `(low, high)` for all components, or a list with one pair for each. `high` is
            excluded, so `(0, 256)` gives every uint8. Has no meaning for bool.
        """
        self._size = as_count(self, "size", size, least=0)
        self._shapes = [tuple(shape) for shape in shapes]
        count = len(self._shapes)
        self._dtypes = [np.dtype(d) for d in np.broadcast_to(np.array(dtype, object), count)]
        self._domains = np.broadcast_to(np.array(domain, object), (count, 2)).tolist()
        self._random = random

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[List[np.ndarray]]:
        begin = rng_state(self.rng)
        rng = self.rng_of_pass() if self._random else np.random.RandomState(0)
        _, first = self._take_loaded() or (None, 0)
        self._position = begin, first
        return self._pass(begin, rng, first)

    def _pass(
        self, begin: Dict[str, Any], rng: np.random.RandomState, first: int
    ) -> Iterator[List[np.ndarray]]:
        sample = None if self._random else self._draw(rng)
        for _ in range(first if sample is None else 0):
            self._draw(rng)  # again, so that the stream is where it was
        for count in range(first, self._size):
            datapoint = self._draw(rng) if sample is None else list(sample)
            self._position = begin, count + 1
            yield datapoint

    def _draw(self, rng: np.random.RandomState) -> List[np.ndarray]:
        datapoint: List[Any] = []
        for shape, dtype, (low, high) in zip(self._shapes, self._dtypes, self._domains):
            if dtype.kind == "f":
                values = rng.uniform(low, high, shape)
            else:  # without an integer in between, it is the lower end
                low, high = (0, 2) if dtype.kind == "b" else (math.floor(low), math.ceil(high))
                values = rng.randint(low, max(high, low + 1), shape, dtype)
            datapoint.append(np.asarray(values, dtype))
        return datapoint
