"""Joins several flows: side by side (`JoinData`) or one after another (`ConcatData`).

Neither draws random numbers; flows that are mixed at random are in `choose.py`.
"""

from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple

from tensorpack.utils import logger

from ._combined import CombinedDataFlow
from ._flow import check_count, not_a_state
from ._length import length_of, length_or_none
from .base import DataFlow


class JoinData(CombinedDataFlow):
    """Takes one datapoint of every flow and makes one of them, until one of the flows ends.

    >>> images = DataFromList([["a.png"], ["b.png"]], shuffle=False)
    >>> list(JoinData([images, DataFromList([[1, 10], [2, 20]], shuffle=False)]))
    [['a.png', 1, 10], ['b.png', 2, 20]]

    Lists and tuples become one list, the components of the first flow first. Dicts become one
    dict, whose keys must differ from flow to flow. The components are not copied. A pass raises a
    TypeError for other datapoints and for lists beside dicts, a ValueError for a key in two dicts.

    It keeps a state, except where two of the flows are made from the same one.
    """

    _at_once = True
    _leaves = True

    # Whether the pass has ended. A flow that is longer than the others is then left in a pass that
    # must not be continued.
    _STATE = {"ended": False}

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        """Logs if the flows have different lengths: some datapoints are then never yielded."""
        super().__init__(df_lists)
        lengths = [length_or_none(flow) for flow in self.df_lists]
        if len(set(lengths) - {None}) > 1:
            found = ", ".join("unknown" if length is None else str(length) for length in lengths)
            logger.warning(
                f"{type(self).__name__}: the flows have different lengths: {found}. "
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
        name = type(self).__name__
        if not all(isinstance(part, dict) for part in parts):
            kinds = ", ".join(type(part).__name__ for part in parts)
            raise TypeError(
                f"{name} joins lists or tuples, or else dicts, but the flows yielded: {kinds}. "
                "Make them of one form by MapData; for a single component, yield [component]."
            )
        joined: Dict[Any, Any] = {}
        for position, part in enumerate(parts):
            for key in joined.keys() & part.keys():
                raise ValueError(
                    f"{name}: the datapoints of flow {position} (counted from 0) have a component "
                    f"{key!r}, and so have those of a flow before it. Rename it by MapData."
                )
            joined.update(part)
        return joined


class ConcatData(CombinedDataFlow):
    """Goes through several flows one after another; a flow may be there more than once.

    >>> flow = DataFromList([[1], [2]], shuffle=False)
    >>> list(ConcatData([flow, DataFromList([[7]]), flow]))
    [[1], [2], [7], [1], [2]]
    """

    # The index of the flow that the pass is in, and whether a pass of each flow was ever begun. If
    # so, its state is that of a pass that must not be continued, unless it is the one at the index.
    # What is loaded is a whole state.
    _STATE: Dict[str, Any] = {"index": 0, "begun": None}

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        super().__init__(df_lists)
        self._begun = [False] * len(self.df_lists)

    def __len__(self) -> int:
        """Returns the sum of the lengths; UnknownLength if that of one is not known."""
        return sum(length_of(flow) for flow in self.df_lists)

    def __iter__(self) -> Iterator[Any]:
        state = self._take_loaded()
        index = 0 if state is None else self._go_back(state)
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

    def _go_back(self, state: Dict[str, Any]) -> int:
        """Brings all flows to where they were, and returns the index of the one to begin with."""
        current = self.df_lists[state["index"]]
        states = dict(zip(map(id, self._distinct), state["flows"]))
        begun = {id(flow) for flow, was_begun in zip(self.df_lists, self._begun) if was_begun}
        for flow in self._distinct:
            if flow is not current and id(flow) in begun:
                flow.load_state_dict(states[id(flow)])
                iter(flow)  # the rest of that pass; the next one is a full one
        # Last, and therefore again: the others may be made from the same flow as this one.
        current.load_state_dict(states[id(current)])
        return state["index"]

    def reset_state(self) -> None:
        super().reset_state()
        self._begun = [False] * len(self.df_lists)

    def state_dict(self) -> Dict[str, Any]:
        if self._loaded is not None:
            # Flows made from the same one cannot tell what each of them was given.
            return self._loaded
        return super().state_dict()

    def _first_position(self) -> Tuple[Any, ...]:
        return 0, self._begun

    def _save_position(self, index: int, begun: List[bool]) -> Tuple[Any, ...]:
        return index, list(begun)

    def _restore_position(self, index: Any, begun: Any) -> Tuple[Any, ...]:
        check_count(self, index, len(self.df_lists) - 1)
        if not isinstance(begun, list) or len(begun) != len(self.df_lists):
            why = f"it has {len(self.df_lists)} flows, and {begun!r:.80} says which were begun"
            raise not_a_state(self, why)
        return index, list(begun)

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        (_, self._begun), self._loaded = self._position, state
