"""Several flows to one: side by side (`JoinData`) or one after another (`ConcatData`).

Neither draws random numbers; flows that are mixed at random are in `choose.py`.
"""

from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

from tensorpack.utils import logger

from ._combined import CombinedDataFlow
from ._length import length_of, length_or_none
from ._state import check_count, check_state
from .base import DataFlow

__all__ = ["ConcatData", "JoinData"]


class JoinData(CombinedDataFlow):
    """Takes one datapoint of every flow and makes one of them, until one of the flows ends.

    Lists and tuples become one list, the components of the first flow first. Dicts become one
    dict, whose keys must differ from flow to flow. The components are not copied.

    It keeps a state, except where two of the flows are made from the same one.
    """

    _at_once = True

    # Whether the pass begun or advanced last has ended. A flow that is longer than the others is
    # then left in a pass that must not be gone on with.
    _ended = False
    _resumed = False

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        """
        Args:
          df_lists: the flows, at least one. Different lengths are logged, for then some of the
            datapoints are never seen.

        Raises:
          TypeError: it is no list, or one of its elements is not a flow.
          ValueError: it is empty.
        """
        super().__init__(df_lists)
        lengths = [length_or_none(flow) for flow in self.df_lists]
        if len(set(lengths) - {None}) > 1:
            found = ", ".join("unknown" if length is None else str(length) for length in lengths)
            logger.warning(
                f"{type(self).__name__}: the flows have different lengths: {found}. "
                "A pass ends with the shortest."
            )

    def __len__(self) -> int:
        """Returns the length of the shortest flow.

        Raises:
          UnknownLength: the length of one of them is not known.
        """
        return min(length_of(flow) for flow in self.df_lists)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          TypeError: a datapoint is no list, tuple or dict.
          ValueError: some are dicts and some are not, or two dicts have a key in common.
        """
        self._ended, self._resumed = self._resumed, False
        # All are begun, also where there is nothing left to yield: it uses up their loaded states.
        passes = [iter(flow) for flow in self.df_lists]
        return iter(()) if self._ended else self._pass(passes)

    def _pass(self, passes: List[Iterator[Any]]) -> Iterator[Any]:
        for parts in zip(*passes):
            self._ended = False
            yield self._join(parts)
        self._ended = True

    def reset_state(self) -> None:
        super().reset_state()
        self._ended = self._resumed = False

    def state_dict(self) -> Dict[str, Any]:
        return {"flows": self._states(), "ended": self._ended}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["flows", "ended"])
        self._load_states(state["flows"])
        self._ended = self._resumed = bool(state["ended"])

    def _join(self, parts: Sequence[Any]) -> Any:
        if all(isinstance(part, (list, tuple)) for part in parts):
            return [component for part in parts for component in part]
        self._check_form(parts)
        joined: Dict[Any, Any] = {}
        for position, part in enumerate(parts):
            for key in part:
                if key in joined:
                    raise ValueError(
                        f"{type(self).__name__}: the datapoints of flow {position} (counted from "
                        f"0) have a component {key!r}, and so have those of a flow before it. "
                        "Rename it in one of them by MapData."
                    )
            joined.update(part)
        return joined

    def _check_form(self, parts: Sequence[Any]) -> None:
        name = type(self).__name__
        for position, part in enumerate(parts):
            if not isinstance(part, (list, tuple, dict)):
                raise TypeError(
                    f"{name} joins lists, tuples or dicts, but flow {position} (counted from 0) "
                    f"yielded a {type(part).__name__}. For a single component, yield [component]."
                )
        if not all(isinstance(part, dict) for part in parts):
            kinds = ", ".join(type(part).__name__ for part in parts)
            raise ValueError(
                f"{name} joins lists with lists and dicts with dicts, but the flows yielded: "
                f"{kinds}. Make them of one form by MapData."
            )


class ConcatData(CombinedDataFlow):
    """Goes through several flows one after another; a flow may be there more than once."""

    _index = 0  # of the flow that the pass begun or advanced last is in
    _resumed: Optional[Dict[str, Any]] = None

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        """
        Args:
          df_lists: the flows, at least one.

        Raises:
          TypeError: it is no list, or one of its elements is not a flow.
          ValueError: it is empty.
        """
        super().__init__(df_lists)
        # Whether a pass of each flow was ever begun. If so, its state is that of a pass that must
        # not be gone on with, unless the flow is the one at `_index`.
        self._begun = [False] * len(self.df_lists)

    def __len__(self) -> int:
        """Returns the sum of the lengths.

        Raises:
          UnknownLength: the length of one of the flows is not known.
        """
        return sum(length_of(flow) for flow in self.df_lists)

    def __iter__(self) -> Iterator[Any]:
        state, self._resumed = self._resumed, None
        index = 0 if state is None else self._go_back(state)
        return self._pass(index, self._open(index))

    def _pass(self, first: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        for index in range(first, len(self.df_lists)):
            if index != first:
                datapoints = self._open(index)
            for datapoint in datapoints:
                self._index = index
                yield datapoint

    def _open(self, index: int) -> Iterator[Any]:
        self._index = index
        self._begun[index] = True
        return iter(self.df_lists[index])

    def _go_back(self, state: Dict[str, Any]) -> int:
        """Brings all flows to where they were, and returns the index of the one to begin with."""
        current = self.df_lists[state["index"]]
        states = dict(zip(map(id, self._distinct), state["flows"]))
        for flow in self._distinct:
            if flow is not current and self._was_begun(flow):
                flow.load_state_dict(states[id(flow)])
                iter(flow)  # what is left of that pass; the next one is a full one
        # Last, and therefore again: the others may be made from the same flow as this one.
        current.load_state_dict(states[id(current)])
        return state["index"]

    def _was_begun(self, flow: DataFlow) -> bool:
        return any(begun for begun, each in zip(self._begun, self.df_lists) if each is flow)

    def reset_state(self) -> None:
        super().reset_state()
        self._index, self._resumed = 0, None
        self._begun = [False] * len(self.df_lists)

    def state_dict(self) -> Dict[str, Any]:
        if self._resumed is not None:
            # Flows made from the same one cannot tell what each of them was given.
            return self._resumed
        return {"flows": self._states(), "index": self._index, "begun": list(self._begun)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["flows", "index", "begun"])
        check_count(self, state["index"], len(self.df_lists) - 1)
        begun = state["begun"]
        if not isinstance(begun, list) or len(begun) != len(self.df_lists):
            raise ValueError(
                f"This is not a state of this {type(self).__name__}, which has "
                f"{len(self.df_lists)} flows: {begun!r:.80} tells which of them were begun."
            )
        self._load_states(state["flows"])
        self._index, self._begun, self._resumed = state["index"], list(begun), state
