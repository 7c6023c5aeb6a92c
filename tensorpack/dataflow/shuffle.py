"""A local shuffle: datapoints in random order within a window, for flows that are read in order."""

import collections
import itertools
from typing import Any, Deque, Dict, Iterator, Optional, Tuple

import numpy as np

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import rng_state, set_rng_state

from ._read_ahead import state_or_reason
from .base import DataFlow, ProxyDataFlow, RNGDataFlow

# What a round, from one filling of the buffer to the next, is in a state; never changed later.
_ROUND = [
    "rng",  # the state of the stream before what is yielded was drawn
    "first",  # the number, in the pass, of a datapoint from which the buffer can be read again
    "read",  # how many datapoints of the pass have been read
    "numbers",  # int64 [buffer]: the datapoints in it
    "uses",  # int64 [buffer]: how often each of them is still to be yielded
]


class LocallyShuffleData(RNGDataFlow, ProxyDataFlow):
    """Keeps a buffer of datapoints and yields from it in random order.

    >>> flow = DataFromList([[i] for i in range(8)], shuffle=False)
    >>> flow = LocallyShuffleData(flow, buffer_size=4)
    >>> flow.rng = np.random.RandomState(0)
    >>> list(flow)
    [[2], [3], [0], [6], [4], [5], [7], [1]]

    A pass goes once through the wrapped flow. The buffer is filled, a random part of it is
    yielded, it is filled again, and so on until both are empty: no datapoint is lost.

    A state contains no datapoints but their numbers. To resume, a part of the pass is read again,
    from the oldest datapoint that was in the buffer: a few times `buffer_size` datapoints, because
    chance may keep one there for long.
    """

    # The state of `ds` before `first`, or why there is none; the round, None before the first pass;
    # and how much of the round was yielded.
    _STATE = {"ds": None, "round": None, "taken": 0}
    _INNER = ("ds", "rng")

    @accepts_old_keywords(nr_reuse="num_reuse")
    def __init__(
        self,
        ds: DataFlow,
        buffer_size: int,
        num_reuse: int = 1,
        shuffle_interval: Optional[int] = None,
    ) -> None:
        """
        Args:
          buffer_size: how many datapoints are in the buffer at most; 1 leaves the order as it is.
          num_reuse: how often each datapoint is yielded, the same object every time, but only
            once between two fillings of the buffer.
          shuffle_interval: how many are yielded between two fillings, at most: 1 mixes best, but
            each filling takes a time in proportion to `buffer_size`. A third of the buffer unless
            given.
        """
        super().__init__(ds)
        self.buffer_size = as_count(self, "buffer_size", buffer_size)
        self.num_reuse = as_count(self, "num_reuse", num_reuse)
        if shuffle_interval is None:
            shuffle_interval = max(1, self.buffer_size // 3)
        self.shuffle_interval = as_count(self, "shuffle_interval", shuffle_interval)

    def __len__(self) -> int:
        return super().__len__() * self.num_reuse

    def __iter__(self) -> Iterator[Any]:
        _, state, taken = self._take_loaded() or (None, None, 0)
        if state is None:
            rng, empty = self.rng_of_pass(), np.zeros(0, np.int64)
            state = dict(zip(_ROUND, [rng_state(rng), 0, 0, empty, empty]))
        else:
            rng = np.random.RandomState(0)
            set_rng_state(rng, state["rng"])
        buffer = _Buffer(self.ds, self.buffer_size, state)
        place = buffer.place_before(state["first"])[1]
        self._position = place, state, taken
        return self._pass(place, state, taken, rng, buffer)

    def _pass(
        self,
        place: Any,
        state: Dict[str, Any],
        taken: int,
        rng: np.random.RandomState,
        buffer: "_Buffer",
    ) -> Iterator[Any]:
        while True:
            numbers, uses = state["numbers"], state["uses"].copy()
            chosen = rng.permutation(len(numbers))[: self.shuffle_interval]
            for number in numbers[chosen[taken:]].tolist():
                taken += 1
                self._position = place, state, taken
                yield buffer.held[number]
            # What was yielded often enough is taken out, and the buffer filled.
            uses[chosen] -= 1
            for number in numbers[uses == 0].tolist():
                del buffer.held[number]
            numbers, uses = numbers[uses > 0], uses[uses > 0]
            begin = buffer.read
            count = buffer.read_on(max(0, self.buffer_size - len(numbers)))
            numbers = np.concatenate([numbers, np.arange(begin, begin + count, dtype=np.int64)])
            uses = np.concatenate([uses, np.full(count, self.num_reuse, np.int64)])
            if len(numbers):
                first, place = buffer.place_before(int(numbers.min()))
            else:  # behind the end of `ds`: nothing is read again, and `ds` knows that it has ended
                first, place = buffer.read, state_or_reason(self.ds)
            state = dict(zip(_ROUND, [rng_state(rng), first, buffer.read, numbers, uses]))
            taken = 0
            if not len(numbers):
                self._position = place, state, taken
                return


class _Buffer:
    """Reads a pass of a flow, and notes every few datapoints from where to read it again.

    `held` are the datapoints in the buffer by their numbers; `read` is the number of the next one.
    """

    def __init__(self, ds: DataFlow, size: int, state: Dict[str, Any]) -> None:
        """Reads again what is in the buffer in a state."""
        self._ds, self._size, self._datapoints = ds, size, iter(ds)
        self._places: Deque[Tuple[int, Any]] = collections.deque()  # numbers, and states before
        self.held: Dict[int, Any] = {}
        self.read = state["first"]
        self._note_place()
        wanted = set(state["numbers"].tolist())
        for number in range(state["first"], state["read"]):
            self.read_on(1)
            if number not in wanted:
                self.held.pop(number, None)
        if 0 < len(wanted) < size:  # `ds` had been asked for more, and may have ended
            ahead = list(itertools.islice(self._datapoints, 1))
            self._datapoints = itertools.chain(ahead, self._datapoints)

    def read_on(self, count: int) -> int:
        """Reads as many datapoints, or those that are left, and returns how many these are."""
        begin = self.read
        for datapoint in itertools.islice(self._datapoints, count):
            self.held[self.read] = datapoint
            self.read += 1
            if self.read % self._size == 0:
                self._note_place()
        return self.read - begin

    def place_before(self, number: int) -> Tuple[int, Any]:
        """Returns the last place not after a number, and forgets the ones before it."""
        while len(self._places) > 1 and self._places[1][0] <= number:
            self._places.popleft()
        return self._places[0]

    def _note_place(self) -> None:
        # Here, while the pass is the one of `ds` that was begun or advanced last.
        self._places.append((self.read, state_or_reason(self._ds)))
