"""Maps that draw random numbers, from a stream of its own for each datapoint.

What is drawn for a datapoint depends on the seed, on the pass and on the position of the datapoint
in it, and on nothing else. So it is the same after a run was resumed.
"""

import threading
from typing import Any, Callable, Dict, Iterator, Tuple

import numpy as np

from tensorpack.utils.rng import rng_state

from ._flow import ProcessLocal
from .base import DataFlow, RNGDataFlow
from .map import DatapointMap, apply_function, checked_function, note_datapoint


class RandomMap(RNGDataFlow, DatapointMap):
    """Base of maps that draw random numbers."""

    # Returns a new datapoint, or None to drop it, for one, its position, and a random stream.
    _draw: Callable[[Any, int, np.random.RandomState], Any]

    # The random stream before the pass, and how many datapoints of the wrapped flow were taken.
    _STATE = {"rng": None, "count": 0}
    _INNER = ("ds", "rng")

    def __init__(self, ds: DataFlow) -> None:
        super().__init__(ds)
        self._stream: ProcessLocal[_Stream] = ProcessLocal(_Stream)

    def __iter__(self) -> Iterator[Any]:
        begin, key = self._begin()
        _, count = self._take_loaded() or (None, 0)
        self._position = begin, count
        return self._pass(begin, key, iter(self.ds), count)

    def _begin(self) -> Tuple[Dict[str, Any], np.ndarray]:
        """Returns the random stream before a new pass, and the key of all draws in the pass."""
        begin = rng_state(self.rng)
        return begin, self.rng.randint(0, 2**64, size=2, dtype=np.uint64)

    def _pass(
        self, begin: Dict[str, Any], key: np.ndarray, datapoints: Iterator[Any], first: int
    ) -> Iterator[Any]:
        for number, datapoint in enumerate(datapoints, first):
            self._position = begin, number + 1
            stream = self._stream.get()
            try:
                with stream.lock:
                    result = self._draw(datapoint, number, stream.at(key, number))
            except Exception as error:
                name = type(self).__name__
                note_datapoint(error, name, number, datapoint, self.last_file, "counted from 0")
                raise
            if result is not None:
                yield result


class RandomMapData(RandomMap):
    """`MapData` whose function gets a random stream as well: None drops the datapoint.

    What is drawn from the stream depends on the seed, the pass and the position alone.

    >>> flow = DataFromList([[10], [20], [30]], shuffle=False)
    >>> flow = RandomMapData(flow, lambda dp, rng: [dp[0] + rng.randint(10)])
    >>> flow.rng = np.random.RandomState(0)
    >>> list(flow)
    [[18], [28], [31]]
    """

    def __init__(self, ds: DataFlow, func: Callable[[Any, np.random.RandomState], Any]) -> None:
        """`func` takes a datapoint and a `numpy.random.RandomState`, which it must not keep."""
        super().__init__(ds)
        self.func: Callable[..., Any] = checked_function(self, func)

    def _draw(self, datapoint: Any, number: int, rng: np.random.RandomState) -> Any:
        return apply_function(lambda dp: self.func(dp, rng), datapoint)


class _Stream:
    """A random stream that begins at a place of its own for each datapoint of each pass.

    It is a counter-based one (Philox 4x64, Salmon et al. 2011), so a place costs nothing to go to:
    the key is that of the pass, the upper half of the counter the number of the datapoint.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # held while it is in use
        self._rng = np.random.RandomState(np.random.Philox(0))
        self._counter, buffer = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
        self._state = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": None},
            "buffer": buffer,
            "buffer_pos": 4,  # nothing is left in it
            "has_uint32": 0,
            "uinteger": 0,
            "has_gauss": 0,
            "gauss": 0.0,
        }

    def at(self, key: np.ndarray, number: int) -> np.random.RandomState:
        """Returns the stream of a datapoint; valid until the next call."""
        self._state["state"]["key"] = key  # type: ignore[index]
        self._counter[2] = number
        self._rng.set_state(self._state)
        return self._rng
