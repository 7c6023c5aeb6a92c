"""Mixes flows at random: for each datapoint, the flow that gives it is drawn.

Every pass draws from its own stream, so that passes at the same time do not change one another.
"""

import bisect
import copy
import itertools
import math
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np

from tensorpack.utils.rng import rng_state, set_rng_state

from ._length import length_of
from .base import DataFlow, RNGDataFlow, UnknownLength
from .join import CombinedDataFlow, listed

_END = object()


class _DrawnDataFlow(RNGDataFlow, CombinedDataFlow):
    """Draws the flow of each datapoint.

    `_position` is the stream of the pass, and what is left of it, in a form of the subclass.
    """

    _STATE = dict.fromkeys(["draws", "left"])
    _INNER = ("flows", "rng")
    _at_once = True
    _whole: Callable[[], Any]  # returns what is left of a new pass
    _pass: Callable[[np.random.RandomState, Any, List[Any]], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        rng, left = self._take_loaded() or (self.rng_of_pass(), self._whole())
        self._position = rng, left
        # All are begun, also where there is nothing left to yield: it uses up their loaded states.
        return self._pass(rng, left, [iter(flow) for flow in self.df_lists])

    def _save_position(self, draws: Optional[np.random.RandomState], left: Any) -> Tuple[Any, ...]:
        return (None, None) if draws is None else (rng_state(draws), copy.copy(left))

    def _restore_position(self, draws: Any, left: Any) -> Any:
        if draws is None:
            return None
        rng = np.random.RandomState(0)
        set_rng_state(rng, draws)
        return rng, copy.copy(left)


class RandomChooseData(_DrawnDataFlow):
    """Takes each datapoint from one of several flows, until the one that is drawn has ended.

    >>> tens = DataFromList([[10], [20], [30]], shuffle=False)
    >>> ones = DataFromList([[1], [2], [3]], shuffle=False)
    >>> flow = RandomChooseData([(tens, 0.7), (ones, 0.3)])
    >>> flow.rng = np.random.RandomState(1)
    >>> list(flow)
    [[10], [1], [20], [30]]

    For an exact resume, make a flow for each element of the list, as for `JoinData`.
    """

    _STATE = dict.fromkeys(["draws", "ended"])
    _leaves = True

    def __init__(self, df_lists: Iterable[Union[DataFlow, Tuple[DataFlow, float]]]) -> None:
        """`df_lists` are flows, all equally likely, or pairs of a flow and its probability."""
        elements = listed(self, df_lists)
        even = 1 / max(1, len(elements))
        pairs = [e if isinstance(e, (list, tuple)) else (e, even) for e in elements]
        super().__init__([flow for flow, _ in pairs])
        probabilities = [float(probability) for _, probability in pairs]
        total = math.fsum(probabilities)
        # Not `any(... < 0)`: a NaN is neither less than 0 nor anything else.
        if not all(p >= 0 for p in probabilities) or not math.isclose(total, 1, rel_tol=1e-6):
            raise ValueError(
                f"{type(self).__name__} needs probabilities that are not negative and add up to 1, "
                f"but got {probabilities}, which is {total:.9g} together."
            )
        bounds = list(itertools.accumulate(probabilities))
        # The last of them is exactly 1, and so is that of the last flow that can be drawn.
        self._bounds = [bound / bounds[-1] for bound in bounds]

    def __len__(self) -> int:
        raise UnknownLength(
            f"The length of {type(self).__name__} is not known: chance decides which of its flows "
            "ends first."
        )

    def _whole(self) -> bool:
        return False

    def _pass(self, rng: np.random.RandomState, ended: bool, passes: List[Any]) -> Iterator[Any]:
        while not ended:
            drawn = bisect.bisect_right(self._bounds, rng.random_sample())
            datapoint = next(passes[drawn], _END)
            ended = datapoint is _END
            self._position = rng, ended
            if not ended:
                yield datapoint


class RandomMixData(_DrawnDataFlow):
    """Goes through all of several flows at once, in an order that is drawn at random.

    >>> tens = DataFromList([[10], [20], [30]], shuffle=False)
    >>> flow = RandomMixData([tens, DataFromList([[1], [2]], shuffle=False)])
    >>> flow.rng = np.random.RandomState(0)
    >>> list(flow)
    [[10], [20], [1], [2], [30]]

    Every order in which the datapoints of one flow follow one another as they do there is equally
    likely. A pass raises a RuntimeError if a flow yields fewer datapoints than its length.

    For an exact resume, make a flow for each element of the list, as for `JoinData`.
    """

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        """`df_lists` are flows of known lengths; if one is not known, it is an `UnknownLength`."""
        super().__init__(df_lists)
        self._whole()

    def __len__(self) -> int:
        return sum(self._whole())

    def _pass(
        self, rng: np.random.RandomState, left: List[int], passes: List[Any]
    ) -> Iterator[Any]:
        for total in range(sum(left), 0, -1):
            # One of all the datapoints that are left is drawn; only its flow matters.
            number = int(rng.randint(total))
            drawn = bisect.bisect_right(list(itertools.accumulate(left)), number)
            datapoint = next(passes[drawn], _END)
            if datapoint is _END:
                flow = self.df_lists[drawn]
                raise RuntimeError(
                    f"{type(self).__name__}: flow {drawn} (counted from 0), a "
                    f"{type(flow).__name__}, has a length of {len(flow)}, but {left[drawn]} of "
                    "them are missing. That of a flow that drops datapoints, such as MapData, is "
                    "too large."
                )
            left[drawn] -= 1
            self._position = rng, left
            yield datapoint

    def _whole(self) -> List[int]:
        return list(map(length_of, self.df_lists))
