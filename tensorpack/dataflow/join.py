"""Flows made from several others: side by side, one after another, or mixed at random.

Every pass of a mixture draws from its own stream, so that passes at the same time do not change one
another.
"""

import bisect
import contextlib
import copy
import itertools
import math
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.rng import rng_state, set_rng_state

from ._flow import (
    call_optional,
    form_of,
    is_flow,
    length_of,
    length_or_none,
    not_a_state,
    what_instead,
)
from ._read_ahead import may_be_left, why_late
from .base import DataFlow, ResumableDataFlow, RNGDataFlow, StateNotKept, state_of

_END = object()


class CombinedDataFlow(ResumableDataFlow):
    """A flow made from several others, `df_lists`, at least one.

    To resume it, make a flow for each of them: of a flow that two of them read, the state is that
    of one of its passes.
    """

    _INNER: Tuple[str, ...] = ("flows",)
    _at_once = False  # whether a pass goes through all flows at the same time
    _leaves = False  # whether a pass may end while those of its flows have not

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        name = type(self).__name__
        self.df_lists: List[DataFlow] = as_flows(self, df_lists)
        for position, flow in enumerate(self.df_lists):
            if not is_flow(flow):
                raise TypeError(
                    f"{name} is made from DataFlows, but number {position} of {len(self.df_lists)} "
                    f"(counted from 0) is {what_instead(flow)}"
                )
        self._distinct = list({id(flow): flow for flow in self.df_lists}.values())
        self._no_state: Optional[str] = next(filter(None, map(why_late, self._distinct)), None)
        if self._at_once and len(self._distinct) < len(self.df_lists):
            self._no_state = (
                f"{name} keeps no state: it goes through one flow twice at the same time. Make a "
                "flow for each."
            )

    def reset_state(self) -> None:
        """Prepares every flow, each of them once."""
        super().reset_state()
        for flow in self._distinct:
            flow.reset_state()

    @property
    def seeded(self) -> bool:
        may_leave = not self._leaves or all(map(may_be_left, self._distinct))
        return may_leave and all(getattr(flow, "seeded", True) for flow in self._distinct)

    def start_processes(self) -> None:
        for flow in self._distinct:
            call_optional(flow, "start_processes")

    def close(self) -> None:
        """Closes every flow, and then raises the error of one of them, if any."""
        with contextlib.ExitStack() as stack:
            for flow in reversed(self._distinct):
                stack.callback(call_optional, flow, "close")

    def _check_keeps_state(self) -> None:
        if self._no_state is not None:
            raise StateNotKept(self._no_state)

    def _state_of_flows(self) -> List[Dict[str, Any]]:
        """Returns the states of the flows; of one that is in the list several times, only one."""
        return [state_of(flow) for flow in self._distinct]

    def _load_flows(self, states: Any) -> None:
        if not isinstance(states, list) or len(states) != len(self._distinct):
            count = len(states) if isinstance(states, list) else "no"
            why = f"it needs the states of {len(self._distinct)} flows, but got {count}"
            raise not_a_state(self, why)
        for flow, state in zip(self._distinct, states):
            flow.load_state_dict(state)


class JoinData(CombinedDataFlow):
    """Takes one datapoint of every flow and makes one of them, until one of the flows ends.

    >>> images = DataFromList([["a.png"], ["b.png"]], shuffle=False)
    >>> list(JoinData([images, DataFromList([[1, 10], [2, 20]], shuffle=False)]))
    [['a.png', 1, 10], ['b.png', 2, 20]]

    Lists and tuples become one list, the components of the first flow first. Dicts become one
    dict, whose keys must differ from flow to flow. The components are not copied. A pass raises a
    TypeError for other datapoints and for lists beside dicts, a ValueError for a key in two dicts.

    For an exact resume, make a flow for each element of the list, here and in mixtures.
    """

    # Whether the pass has ended. A flow that is longer than the others is then left in a pass that
    # must not be continued.
    _STATE = {"ended": False}
    _at_once = True
    _leaves = True

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        """Logs if the flows have different lengths: some datapoints are then never yielded."""
        super().__init__(df_lists)
        lengths = [length_or_none(flow) for flow in self.df_lists]
        if len(set(lengths) - {None}) > 1:
            texts = ["unknown" if length is None else str(length) for length in lengths]
            logger.warning(
                f"{type(self).__name__}: the flows have different lengths: {', '.join(texts)}. "
                "A pass ends with the shortest."
            )

    def __len__(self) -> int:
        """Returns the length of the shortest flow; UnknownLength if that of one is not known."""
        return min(length_of(flow) for flow in self.df_lists)

    def __iter__(self) -> Iterator[Any]:
        self._position = (ended,) = self._take_loaded() or self._first_position()
        # All are begun, also where there is nothing left to yield: it uses up their loaded states.
        passes = [iter(flow) for flow in self.df_lists]
        return iter(()) if ended else self._pass(passes)

    def _pass(self, passes: List[Iterator[Any]]) -> Iterator[Any]:
        for parts in zip(*passes):
            self._position = (False,)
            yield self._join(parts)
        self._position = (True,)

    def _join(self, parts: Sequence[Any]) -> Any:
        if all(isinstance(part, (list, tuple)) for part in parts):
            return [component for part in parts for component in part]
        if not all(isinstance(part, dict) for part in parts):
            forms = ", ".join(map(form_of, parts))
            raise TypeError(
                f"{type(self).__name__} joins lists or dicts, but the flows yielded {forms}. Make "
                "them of one form by MapData; for a single component, yield [component]."
            )
        joined = {key: value for part in parts for key, value in part.items()}
        if len(joined) < sum(map(len, parts)):
            forms = ", ".join(map(form_of, parts))
            raise ValueError(
                f"{type(self).__name__} of {forms}: two have a component of one name. Rename it by "
                "MapData."
            )
        return joined


class ConcatData(CombinedDataFlow):
    """Goes through several flows one after another; a flow may be there more than once.

    >>> flow = DataFromList([[1], [2]], shuffle=False)
    >>> list(ConcatData([flow, DataFromList([[7]]), flow]))
    [[1], [2], [7], [1], [2]]
    """

    # The index of the flow that the pass is in, and whether a pass of each flow was ever begun. If
    # so, its state is that of a pass that must not be continued, unless it is the one at the index.
    # Loaded are the index, and the state of the flow there.
    _STATE: Dict[str, Any] = {"index": 0, "begun": None}

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        super().__init__(df_lists)
        self._begun = [False] * len(self.df_lists)

    def __len__(self) -> int:
        """Returns the sum of the lengths; UnknownLength if that of one is not known."""
        return sum(length_of(flow) for flow in self.df_lists)

    def __iter__(self) -> Iterator[Any]:
        index, state = self._take_loaded() or (0, None)
        if state is not None:
            current = self.df_lists[index]
            begun = {id(flow) for flow, is_begun in zip(self.df_lists, self._begun) if is_begun}
            for flow in self._distinct:
                if flow is not current and id(flow) in begun:
                    iter(flow)  # the rest of a pass that was over; the next one is a full one
            current.load_state_dict(state)  # again, for another may be made from the same flow
        return self._pass(index, self._open(index))

    def _pass(self, first: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        for index in range(first, len(self.df_lists)):
            if index != first:
                datapoints = self._open(index)
            for datapoint in datapoints:
                self._position = index, self._begun
                yield datapoint

    def _open(self, index: int) -> Iterator[Any]:
        self._begun[index] = True
        self._position = index, self._begun
        return iter(self.df_lists[index])

    def reset_state(self) -> None:
        super().reset_state()
        self._begun = [False] * len(self.df_lists)

    def _first_position(self) -> Tuple[Any, ...]:
        return 0, self._begun

    def _save_position(self, index: int, begun: List[bool]) -> Tuple[Any, ...]:
        return index, list(begun)

    def _restore_position(self, index: Any, begun: Any) -> Tuple[Any, ...]:
        return index, list(begun)

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        index, self._begun = self._position
        self._loaded = index, state["flows"][self._distinct.index(self.df_lists[index])]


class _DrawnDataFlow(RNGDataFlow, CombinedDataFlow):
    """Draws the flow of each datapoint.

    `_position` is the stream of the pass, and what is left of it, in a form of the subclass.
    """

    _STATE = dict.fromkeys(["draws", "left"])
    _INNER = ("flows", "rng")
    _at_once = True
    _whole_pass: Callable[[], Any]  # returns what is left of a new pass
    _pass: Callable[[np.random.RandomState, Any, List[Any]], Iterator[Any]]

    def __iter__(self) -> Iterator[Any]:
        rng, left = self._take_loaded() or (self.rng_of_pass(), self._whole_pass())
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
    """

    _STATE = dict.fromkeys(["draws", "ended"])
    _leaves = True

    def __init__(self, df_lists: Iterable[Union[DataFlow, Tuple[DataFlow, float]]]) -> None:
        """`df_lists` are flows, all equally likely, or pairs of a flow and its probability."""
        elements = as_flows(self, df_lists)
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

    def _whole_pass(self) -> bool:
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
    likely. All lengths must be known, and be true: a pass raises a RuntimeError if a flow yields
    fewer datapoints.
    """

    def __len__(self) -> int:
        return sum(self._whole_pass())

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

    def _whole_pass(self) -> List[int]:
        return list(map(length_of, self.df_lists))


def as_flows(owner: DataFlow, df_lists: Any) -> List[Any]:
    """Returns the flows of the argument `df_lists` in a new list, or raises an error."""
    if hasattr(df_lists, "reset_state"):
        name = type(owner).__name__
        raise TypeError(f"{name} takes a list of flows, but got one. Put it into a list.")
    return list(df_lists)
