"""Yields random arrays in place of data, to try a model or to measure what consumes the data."""

from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count, as_range
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
        try:
            shapes = [tuple(shape) for shape in shapes]
        except TypeError as error:
            raise TypeError(
                "FakeData takes a list of shapes, one for each component, such as [[84, 84], []], "
                f"but got {shapes!r}."
            ) from error
        paired = isinstance(domain, Sequence) and any(isinstance(d, (list, tuple)) for d in domain)
        dtypes = self._one_each("dtype", dtype, isinstance(dtype, (list, tuple)), len(shapes))
        domains = self._one_each("domain", domain, paired, len(shapes))
        self._components = list(map(_Component, shapes, dtypes, domains))
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
        return [component.draw(rng) for component in self._components]

    def _one_each(self, name: str, value: Any, is_list: bool, count: int) -> Sequence[Any]:
        """Returns `count` values: those of the list, or one value as often."""
        values = list(value) if is_list else [value] * count
        if len(values) != count:
            raise ValueError(
                f"FakeData has {count} shapes but {len(values)} values of {name}: {value}. "
                f"Give one {name} for all, or one for each shape."
            )
        return values


class _Component:
    """What one component looks like; the limits of an integer are integers."""

    def __init__(self, shape: Sequence[int], dtype: Any, domain: Tuple[float, float]) -> None:
        self._shape, self._dtype = tuple(shape), np.dtype(dtype)
        if self._dtype.kind not in "biuf":
            raise ValueError(f"FakeData makes bool, integer or float arrays, but not {dtype}.")
        if self._dtype.kind == "b":
            domain = (0, 2)
        self._low, self._high = as_range("FakeData", "domain", domain)
        if self._dtype.kind in "iu":  # without an integer in between, it is the lower end
            self._low = int(np.floor(domain[0]))
            self._high = max(int(np.ceil(domain[1])), self._low + 1)

    def draw(self, rng: np.random.RandomState) -> np.ndarray:
        low, high = self._low, self._high
        if self._dtype.kind == "f":
            drawn = np.asarray(rng.uniform(low, high, self._shape), self._dtype)
            ends = np.array([low, high], self._dtype)
            return np.minimum(drawn, np.nextafter(ends[1], ends[0]), out=drawn)  # may be rounded up
        return np.asarray(rng.randint(int(low), int(high), self._shape, self._dtype))
