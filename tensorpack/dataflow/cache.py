"""Keeps the datapoints of a flow in memory, so that they are read or computed only once."""

import copy
import itertools
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from tensorpack.utils.rng import is_seeded, rng_state

from ._combined import state_or_reason
from ._flow import check_count
from .base import DataFlow, ProxyDataFlow, RNGDataFlow

_Cache = Tuple[Union[Dict[str, Any], str], List[Any]]


class _Pass(NamedTuple):
    """A pass, and from where the cache can be filled again as it was; a part of the state."""

    ds: Union[Dict[str, Any], str]  # the state of `ds` before the pass that filled or fills it
    rng: Dict[str, Any]  # the state of the random stream before this pass
    cached: bool  # whether this pass reads from the cache
    filled: bool  # whether the cache is complete


class CacheData(RNGDataFlow, ProxyDataFlow):
    """Yields the datapoints of the first complete pass, the same objects, in every later pass.

    >>> flow = CacheData(DataFromList([[1], [2], [3]], shuffle=True))
    >>> list(flow) == list(flow)
    True

    The first pass is in the order of the wrapped flow. A pass that is left before its end leaves no
    cache. `reset_state` keeps the cache, and so do forked processes.

    The datapoints are not in a state. To resume, they are read again from the wrapped flow before
    the first datapoint is yielded; all of them if the cache was complete.
    """

    _STATE = dict.fromkeys([*_Pass._fields, "count"])  # `_position` is a `_Pass`, and this count
    _INNER = ("ds", "rng")
    # The cached datapoints, after the state of `ds` before them, or why there is none.
    _cache: Optional[_Cache] = None

    def __init__(self, ds: DataFlow, shuffle: bool = False) -> None:
        """
        Args:
          ds: its passes have an end, and their datapoints fit into memory.
          shuffle: whether each pass that comes from the cache has an order of its own.
        """
        super().__init__(ds)
        self.shuffle = shuffle

    @property
    def seeded(self) -> bool:
        """Whether the wrapped flow is, and `fix_rng_seed` was called if there is shuffling."""
        return getattr(self.ds, "seeded", True) and (is_seeded() or not self.shuffle)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass; a RuntimeError if one cannot be resumed, because `ds` became shorter."""
        resumed = self._take_loaded()
        if resumed is None:
            if self._cache is None:
                return self._begin_to_fill(0)
            return self._begin_to_read(self._cache, True, 0)
        earlier, count = resumed
        if not earlier.filled:
            return self._begin_to_fill(count)
        cache = self._cache
        if cache is None:
            source = iter(self.ds)
            cache = state_or_reason(self.ds), list(source)
            _check_enough(self, cache[1], count)
            self._cache = cache
        return self._begin_to_read(cache, earlier.cached, count)

    def _begin_to_read(self, cache: _Cache, cached: bool, count: int) -> Iterator[Any]:
        begin, datapoints = cache
        now = _Pass(begin, rng_state(self.rng), cached=cached, filled=True)
        order: Sequence[int] = range(len(datapoints))
        if self.shuffle and cached:
            order = self.rng.permutation(len(datapoints)).data
        self._position = now, count
        return self._read(now, order[count:], count, datapoints)

    def _begin_to_fill(self, count: int) -> Iterator[Any]:
        source = iter(self.ds)
        begin = state_or_reason(self.ds)
        now = _Pass(begin, rng_state(self.rng), cached=False, filled=False)
        datapoints = list(itertools.islice(source, count))
        _check_enough(self, datapoints, count)
        self._position = now, count
        return self._fill(now, source, datapoints)

    def _fill(self, now: _Pass, source: Iterator[Any], datapoints: List[Any]) -> Iterator[Any]:
        for datapoint in source:
            datapoints.append(datapoint)
            self._position = now, len(datapoints)
            yield datapoint
        if self._cache is None:  # another pass at the same time may have been first
            begin = copy.copy(now.ds)  # another object, see `_load_ds`
            self._cache = begin, datapoints
            self._position = now._replace(ds=begin, filled=True), len(datapoints)

    def _read(
        self, now: _Pass, order: Sequence[int], count: int, datapoints: List[Any]
    ) -> Iterator[Any]:
        for position, index in enumerate(order, count + 1):
            self._position = now, position
            yield datapoints[index]

    def _first_position(self) -> Tuple[Any, ...]:
        full = self._cache is not None
        begin = state_or_reason(self.ds) if self._cache is None else self._cache[0]
        return _Pass(begin, rng_state(self.rng), cached=full, filled=full), 0

    def _save_position(self, now: _Pass, count: int) -> Tuple[Any, ...]:
        return (*now, count)

    def _restore_position(self, *values: Any) -> Tuple[Any, ...]:
        *now, count = values
        check_count(self, count, sys.maxsize)  # `len` may be too small, as of BatchDataByShape
        return _Pass(*now), count

    def _load_ds(self, state: Dict[str, Any]) -> None:
        if self._cache is None or state is not self._cache[0]:  # else this is that cache
            super()._load_ds(state)
            self._cache = None


def _check_enough(flow: CacheData, datapoints: List[Any], count: int) -> None:
    if len(datapoints) < count:
        raise RuntimeError(
            f"{type(flow).__name__} resumes after datapoint {count} of a pass, but "
            f"{type(flow.ds).__name__} yielded only {len(datapoints)} when it was read again. Has "
            "the data changed?"
        )
