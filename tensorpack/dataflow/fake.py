"""Yields random arrays in place of data, to try a model or to measure what consumes the data."""

from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count, as_range
from tensorpack.utils.rng import rng_state

from ._flow import check_count
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
        checked = _shapes(shapes)
        dtypes = _one_each("dtype", dtype, isinstance(dtype, (list, tuple)), len(checked))
        paired = isinstance(domain, Sequence) and any(isinstance(d, (list, tuple)) for d in domain)
        domains = _one_each("domain", domain, paired, len(checked))
        self._components = [_component(*each) for each in zip(checked, dtypes, domains)]
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

    def _restore_position(self, begin: Any, count: Any) -> Tuple[Any, ...]:
        check_count(self, count, self._size)
        return begin, count

    def _draw(self, rng: np.random.RandomState) -> List[np.ndarray]:
        return [component.draw(rng) for component in self._components]


class _Component(NamedTuple):
    """What one component looks like; `low` and `high` are integers if the dtype is one."""

    shape: Tuple[int, ...]
    dtype: np.dtype
    low: float
    high: float

    def draw(self, rng: np.random.RandomState) -> np.ndarray:
        if self.dtype.kind == "f":
            drawn = np.asarray(rng.uniform(self.low, self.high, self.shape), self.dtype)
            low, high = np.array([self.low, self.high], self.dtype)
            return np.minimum(drawn, np.nextafter(high, low), out=drawn)  # it may be rounded up
        return np.asarray(rng.randint(int(self.low), int(self.high), self.shape, self.dtype))


def _component(shape: Tuple[int, ...], dtype: Any, domain: Tuple[float, float]) -> _Component:
    dtype = np.dtype(dtype)
    if dtype.kind != "b":
        as_range("FakeData", "domain", domain)
    low, high = (0, 2) if dtype.kind == "b" else domain
    if dtype.kind not in "biuf":
        raise ValueError(f"FakeData makes bool, integer or float arrays, but not {dtype}.")
    if dtype.kind in "iu":
        # A range without an integer in it, such as (0, 0.5), has its lower end.
        low = int(np.floor(low))
        high = max(int(np.ceil(high)), low + 1)
        limits = np.iinfo(dtype)
        if low < limits.min or high > limits.max + 1:
            raise ValueError(
                f"The domain {domain} does not lie within {dtype}, which goes from {limits.min} "
                f"to {limits.max} (the upper end of a domain is excluded)."
            )
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        if not max(abs(low), abs(high)) <= largest or not np.isfinite(float(high) - float(low)):
            raise ValueError(
                f"The domain {domain} does not lie within {dtype}, whose largest number is "
                f"{largest}, or it is wider than float64 can tell."
            )
    return _Component(shape, dtype, low, high)


def _shapes(shapes: Any) -> List[Tuple[int, ...]]:
    try:
        listed = [tuple(shape) for shape in shapes]
    except TypeError as error:
        raise TypeError(
            f"FakeData takes a list of shapes, one for each component, such as [[84, 84], []], but "
            f"got {shapes!r}."
        ) from error
    return [
        tuple(
            as_count(f"FakeData, axis {axis} of shape {index}", "length", length, 0)
            for axis, length in enumerate(shape)
        )
        for index, shape in enumerate(listed)
    ]


def _one_each(name: str, value: Any, is_list: bool, count: int) -> Sequence[Any]:
    """Returns `count` values: those of the list, or one value as often."""
    values = list(value) if is_list else [value] * count
    if len(values) != count:
        raise ValueError(
            f"FakeData has {count} shapes but {len(values)} values of {name}: {value}. "
            f"Give one {name} for all, or one for each shape."
        )
    return values
