"""Keeps the datapoints of a flow in memory, so that they are read or computed only once."""

import copy
import itertools
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from tensorpack.utils.rng import is_seeded, rng_state

from ._read_ahead import state_or_reason
from .base import DataFlow, ProxyDataFlow, RNGDataFlow


class CacheData(RNGDataFlow, ProxyDataFlow):
    """Yields the datapoints of the first complete pass, the same objects, in every later pass.

    >>> flow = CacheData(DataFromList([[1], [2], [3]], shuffle=True))
    >>> list(flow) == list(flow)
    True

    The first pass is in the order of the wrapped flow. A pass that is left before its end leaves no
    cache. `reset_state` keeps the cache, and so do forked processes.

    The datapoints are not in a state. To resume, they are read again from the wrapped flow, all of
    them if the cache was complete.
    """

    # The state of `ds` before the pass that filled or fills the cache, or why there is none; that
    # of the random stream before this pass; whether this pass reads from the cache; whether that is
    # complete; how many datapoints were yielded.
    _STATE = dict.fromkeys(["ds", "rng", "cached", "filled", "count"])
    _INNER = ("ds", "rng")
    _cache: Optional[Tuple[Any, List[Any]]] = None  # what is "ds" in a state, and the datapoints

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
        full = self._cache is not None
        _, _, cached, filled, count = self._take_loaded() or (None, None, full, full, 0)
        source: Iterator[Any] = iter(())
        if self._cache is not None:
            begin, datapoints = self._cache
        else:
            source = iter(self.ds)
            begin = state_or_reason(self.ds)
            datapoints = list(source if filled else itertools.islice(source, count))
            if filled:
                self._cache = begin, datapoints
        rng = rng_state(self.rng)
        self._position = begin, rng, cached, filled, count
        if not filled:
            return self._fill(begin, rng, source, datapoints)
        order: Sequence[int] = range(len(datapoints))
        if self.shuffle and cached:
            order = self.rng.permutation(len(datapoints)).data
        return self._read(self._position, order, datapoints)

    def _fill(
        self, begin: Any, rng: Any, source: Iterator[Any], datapoints: List[Any]
    ) -> Iterator[Any]:
        for datapoint in source:
            datapoints.append(datapoint)
            self._position = begin, rng, False, False, len(datapoints)
            yield datapoint
        if self._cache is None:  # another pass at the same time may have been first
            begin = copy.copy(begin)  # another object, see `_load_ds`
            self._cache = begin, datapoints
            self._position = begin, rng, False, True, len(datapoints)

    def _read(
        self, position: Tuple[Any, ...], order: Sequence[int], datapoints: List[Any]
    ) -> Iterator[Any]:
        *place, first = position
        for count, index in enumerate(order[first:], first + 1):
            self._position = (*place, count)
            yield datapoints[index]

    def _first_position(self) -> Tuple[Any, ...]:
        full = self._cache is not None
        return (*super()._first_position()[:2], full, full, 0)

    def _state_of_ds(self) -> Any:
        return state_or_reason(self.ds) if self._cache is None else self._cache[0]

    def _load_ds(self, state: Dict[str, Any]) -> None:
        if self._cache is None or state is not self._cache[0]:  # else this is that cache
            super()._load_ds(state)
            self._cache = None
