"""A local shuffle: datapoints in random order within a window, for flows that are read in order.

A state contains no datapoints: it has the position of the flow before the oldest one in the buffer,
and the numbers of those in the buffer.
"""

import collections
import itertools
from typing import Any, Deque, Dict, Iterator, NamedTuple, Optional, Set, Tuple, Union

import numpy as np

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import rng_state, set_rng_state

from ._combined import state_or_reason
from ._flow import check_count, check_state, not_a_state
from .base import DataFlow, ProxyDataFlow, RNGDataFlow


class LocallyShuffleData(RNGDataFlow, ProxyDataFlow):
    """Keeps a buffer of datapoints and yields from it in random order.

    >>> flow = DataFromList([[i] for i in range(8)], shuffle=False)
    >>> flow = LocallyShuffleData(flow, buffer_size=4)
    >>> flow.rng = np.random.RandomState(0)
    >>> list(flow)
    [[2], [3], [0], [6], [4], [5], [7], [1]]

    A pass goes once through the wrapped flow. The buffer is filled, a random part of it is
    yielded, it is filled again, and so on until both are empty: no datapoint is lost.

    To resume from a state, a part of the pass is read again, from the oldest datapoint that was in
    the buffer: a few times `buffer_size` datapoints, because chance may keep one there for long.
    """

    # The state of `ds`, or why there is none, and what is `_SAVED` of a round; None before the
    # first pass. And how much of the round was yielded.
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
        """Begins a pass; a RuntimeError if one cannot be resumed, because `ds` became shorter."""
        _, state, taken = self._take_loaded() or (None, None, 0)
        if state is None:
            rng, reader = self.rng_of_pass(), _Reader(self.ds, self.buffer_size)
            numbers = uses = np.zeros(0, np.int64)
        else:
            rng, numbers, uses = np.random.RandomState(0), state["numbers"], state["uses"]
            set_rng_state(rng, state["rng"])
            reader = _Reader(self.ds, self.buffer_size, state["first"])
            reader.read_again(state["read"], set(numbers.tolist()))
            if 0 < len(numbers) < self.buffer_size:  # the end of `ds` had been reached, too
                reader.read_on(1)
        now = self._draw(numbers, uses, rng, reader)
        self._position = now.ds, now.saved(), taken
        return self._pass(now, taken, rng, reader)

    def _pass(
        self, now: "_Round", taken: int, rng: np.random.RandomState, reader: "_Reader"
    ) -> Iterator[Any]:
        while True:
            ds, saved = now.ds, now.saved()
            for number in now.numbers[now.chosen[taken:]].tolist():
                taken += 1
                self._position = ds, saved, taken
                yield reader.held[number]
            now, taken = self._next_round(now, rng, reader), 0
            if len(now.numbers) == 0:
                # behind the end of `ds`: nothing is read again, and `ds` knows that it has ended
                now = now._replace(first=reader.read)
                self._position = state_or_reason(self.ds), now.saved(), 0
                return

    def _next_round(self, now: "_Round", rng: np.random.RandomState, reader: "_Reader") -> "_Round":
        """Takes out what was yielded often enough, and fills the buffer."""
        uses = now.uses.copy()
        uses[now.chosen] -= 1
        for number in now.numbers[uses == 0].tolist():
            del reader.held[number]
        numbers, uses = now.numbers[uses > 0], uses[uses > 0]
        begin = reader.read
        count = reader.read_on(self.buffer_size - len(numbers))
        numbers = np.concatenate([numbers, np.arange(begin, begin + count, dtype=np.int64)])
        uses = np.concatenate([uses, np.full(count, self.num_reuse, np.int64)])
        return self._draw(numbers, uses, rng, reader)

    def _draw(
        self, numbers: np.ndarray, uses: np.ndarray, rng: np.random.RandomState, reader: "_Reader"
    ) -> "_Round":
        begin = rng_state(rng)
        chosen = rng.permutation(len(numbers))[: self.shuffle_interval]
        oldest = int(numbers.min()) if len(numbers) else reader.read
        first, ds = reader.place_before(oldest)
        return _Round(begin, first, reader.read, numbers, uses, chosen, ds)

    def _restore_position(self, ds: Any, state: Any, taken: Any) -> Tuple[Any, ...]:
        if state is not None:
            check_state(self, state, _SAVED)
            numbers, uses = state["numbers"], state["uses"]
            if len(numbers) != len(uses) or len(numbers) > self.buffer_size:
                room = f"which has room for {self.buffer_size}"
                raise not_a_state(self, f"{len(numbers)} datapoints were in the buffer, {room}")
            check_count(self, taken, min(len(numbers), self.shuffle_interval))
        return ds, state, taken


class _Round(NamedTuple):
    """What is in the buffer after a filling, and what of it is yielded before the next one.

    A datapoint goes by its number in the pass of the wrapped flow. Nothing here is changed later.
    """

    rng: Dict[str, Any]  # the state of the stream before `chosen` was drawn
    first: int  # the number of a datapoint from which all in the buffer can be read again
    read: int  # how many datapoints of the pass have been read
    numbers: np.ndarray  # int64 [buffer]: the datapoints
    uses: np.ndarray  # int64 [buffer]: how often each of them is still to be yielded
    chosen: np.ndarray  # int64 [yielded]: indices of the two above
    ds: Union[Dict[str, Any], str]  # the state of the flow before `first`, or why there is none

    def saved(self) -> Dict[str, Any]:
        return dict(zip(_SAVED, self))


_SAVED = _Round._fields[:5]  # those in a state; it has `ds` beside them, and draws `chosen` again


class _Reader:
    """Reads a pass of a flow, and notes every few datapoints from where to read it again.

    `held` are the datapoints in the buffer by their numbers; `read` is the number of the next one.
    """

    def __init__(self, ds: DataFlow, every: int, first: int = 0) -> None:
        self._ds, self._every, self._datapoints = ds, every, iter(ds)
        self._places: Deque[Tuple[int, Any]] = collections.deque()  # as `_Round.first` and `.ds`
        self.held: Dict[int, Any] = {}
        self.read = first
        self._note_place()

    def read_on(self, count: int) -> int:
        """Reads as many datapoints, or those that are left, and returns how many these are."""
        begin = self.read
        for datapoint in itertools.islice(self._datapoints, count):
            self.held[self.read] = datapoint
            self.read += 1
            if self.read % self._every == 0:
                self._note_place()
        if self.read - begin < count:
            self._datapoints = iter(())  # not every iterator can be asked again after its end
        return self.read - begin

    def read_again(self, until: int, wanted: Set[int]) -> None:
        """Reads up to a number, and holds the datapoints that are wanted."""
        while self.read < until:
            if not self.read_on(1):
                raise RuntimeError(
                    f"LocallyShuffleData resumes a pass of {type(self._ds).__name__} of which it "
                    f"had read {until} datapoints, but now there are only {self.read}. Has the "
                    "data changed?"
                )
            if self.read - 1 not in wanted:
                del self.held[self.read - 1]

    def place_before(self, number: int) -> Tuple[int, Any]:
        """Returns the last place not after a number, and forgets the ones before it."""
        while len(self._places) > 1 and self._places[1][0] <= number:
            self._places.popleft()
        return self._places[0]

    def _note_place(self) -> None:
        # Here, while the pass is the one of `ds` that was begun or advanced last.
        self._places.append((self.read, state_or_reason(self._ds)))
