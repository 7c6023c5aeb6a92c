"""Yields random arrays in place of data, to try a model or to measure what consumes the data."""

import math
from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import rng_state

from .base import RNGDataFlow


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
