"""The bases of flows that are made from several others, or read ahead, and rules for states."""

import collections
import contextlib
import inspect
from typing import Any, Deque, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ._flow import call_optional, is_flow, not_a_state, what_instead
from .base import DataFlow, ProxyDataFlow, ResumableDataFlow, StateNotKept, state_of

_END = object()


class CombinedDataFlow(ResumableDataFlow):
    """A flow made from several others, `df_lists`, at least one."""

    _INNER: Tuple[str, ...] = ("flows",)
    # Whether a pass goes through all flows at the same time, not through one after another.
    _at_once = False
    # Whether a pass may end while those of its flows have not.
    _leaves = False

    def __init__(self, df_lists: Iterable[DataFlow]) -> None:
        name = type(self).__name__
        self.df_lists: List[DataFlow] = listed(self, df_lists)
        for position, flow in enumerate(self.df_lists):
            if not is_flow(flow):
                raise TypeError(
                    f"{name} is made from DataFlows, but number {position} of {len(self.df_lists)} "
                    f"(counted from 0) is {what_instead(flow)}"
                )
        self._distinct = list({id(flow): flow for flow in self.df_lists}.values())
        self._no_state = self._why_no_state()

    def reset_state(self) -> None:
        """Prepares every flow, each of them once."""
        super().reset_state()
        for flow in self._distinct:
            flow.reset_state()

    @property
    def seeded(self) -> bool:
        flows, may_leave = self._distinct, not self._leaves or all(map(may_be_left, self._distinct))
        # Of what two flows share, one may have read ahead when the other one reads it.
        shared = _shared_part(self.df_lists if self._at_once else flows)
        alone = shared is None or not any(map(_ahead_in, flows))
        return may_leave and alone and all(getattr(flow, "seeded", True) for flow in flows)

    def start_processes(self) -> None:
        for flow in self._distinct:
            call_optional(flow, "start_processes")

    def close(self) -> None:
        """Closes every flow, and then raises the error of one of them, if any."""
        with contextlib.ExitStack() as stack:
            for flow in reversed(self._distinct):
                stack.callback(call_optional, flow, "close")

    def _state_of_flows(self) -> List[Dict[str, Any]]:
        """Returns the states of the flows; of one that is given several times, only one."""
        if self._no_state is not None:
            raise StateNotKept(self._no_state)
        return [state_of(flow) for flow in self._distinct]

    def _load_flows(self, states: Any) -> None:
        if self._no_state is not None:
            raise StateNotKept(self._no_state)
        if not isinstance(states, list) or len(states) != len(self._distinct):
            found = f"{len(states)} flows" if isinstance(states, list) else type(states).__name__
            needed = f"it needs the states of {len(self._distinct)} flows"
            raise not_a_state(self, f"{needed}, but got {found}")
        for flow, state in zip(self._distinct, states):
            flow.load_state_dict(state)

    def _why_no_state(self) -> Optional[str]:
        late = next(filter(None, map(why_late, self._distinct)), None)
        shared = _shared_part(self.df_lists) if self._at_once else None
        if late is not None or shared is None:
            return late
        first, second, part = shared
        kind = type(part).__name__
        return (
            f"{type(self).__name__} keeps no state: its flows {first} and {second} (counted from "
            f"0) go through one {kind} at the same time, which can tell the position of only one "
            f"of its passes. Make a {kind} for each of them."
        )


class ReadAheadFlow(ProxyDataFlow):
    """A flow whose passes read `ds`, by a `ReadAhead`, before what they read is given out.

    A pass may be left anywhere. Before the next one begins, `ds` is put back to the state behind
    what was given out, so that how far the pass had read makes no difference. Where there is no
    such state, the flow is not `seeded` from then on.
    """

    strict = False  # whether the order of `ds` is kept
    _place: Optional["_Place"] = None  # of the pass that was begun last; None if `ds` is elsewhere
    _astray = False  # whether what a pass gives may depend on how far another one had read
    _kept: Optional[bool] = None

    @property
    def seeded(self) -> bool:
        return super().seeded and not self._astray

    def reset_state(self) -> None:
        self._place = None
        super().reset_state()

    def _load_ds(self, state: Dict[str, Any]) -> None:
        self._place = None
        super()._load_ds(state)

    def _keeps_place(self) -> bool:
        """Returns whether `ds` can be put back; found out before another thread may iterate it."""
        if self._kept is None:
            self._kept = self.strict and not isinstance(state_or_reason(self.ds), str)
        return self._kept

    def _put_back(self) -> None:
        place, self._place = self._place, None
        if self._keeps_place() and place is not None and place.is_ahead:
            self.ds.load_state_dict(place.state)
            iter(self.ds)  # the rest of that pass; the next one is a full one
        elif place is not None and place.is_ahead:
            self._astray = True


class _Place:
    """Where a pass is."""

    state: Any  # of `ds` behind what was given out last, or why there is none
    is_ahead = False  # whether it has read, and its consumer was not yet told of the end


class ReadAhead:
    """A pass over the wrapped flow; used by one thread at a time, the consumer besides.

    Attributes:
      read: how often it was asked for a datapoint.
      place: where it is.
    """

    def __init__(self, flow: ReadAheadFlow, no_state: Optional[str] = None) -> None:
        """`no_state` is why there is no state, where that is known before."""
        flow._put_back()
        self._flow, self._datapoints, self.read = flow, iter(flow.ds), 0
        self._newest: Any = no_state if flow.strict else "results come as they are completed"
        self._waiting: Deque[Any] = collections.deque()  # the states behind what is not given out
        self.place = flow._place = _Place()
        self._note_state()
        self.finish()

    @property
    def is_left(self) -> bool:
        """Whether another pass was begun, which this one is not to disturb before it must."""
        return self._flow._place is not self.place and not self._flow._astray

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._flow._place is not self.place:
            self._flow._astray = True
        self.read += 1
        self.place.is_ahead = True
        datapoint = next(self._datapoints, _END)
        self._note_state()
        if datapoint is _END:
            raise StopIteration
        if self._flow.strict:
            self._waiting.append(self._newest)
        return datapoint

    def give(self) -> None:
        """Notes that the next datapoint is given out, or that the function failed with it."""
        if self._waiting:  # else the order is not kept, or `ds` itself has failed
            self.place.state = self._waiting.popleft()

    def finish(self) -> None:
        """Notes that the consumer is told of the end."""
        self.place.state, self.place.is_ahead = self._newest, False

    def close(self) -> None:
        datapoints, self._datapoints = self._datapoints, iter(())
        call_optional(datapoints, "close")

    def _note_state(self) -> None:
        if not isinstance(self._newest, str):  # it would be asked after every datapoint
            try:
                self._newest = state_of(self._flow.ds)
            except StateNotKept as error:
                self._newest = str(error)


def may_be_left(flow: DataFlow) -> bool:
    """Returns whether later passes of a flow are the same wherever one is left."""
    return all(each._keeps_place() for each in _ahead_in(flow))


def _ahead_in(flow: DataFlow) -> List[ReadAheadFlow]:
    return [part for part in parts_of(flow) if isinstance(part, ReadAheadFlow)]


def listed(owner: DataFlow, df_lists: Any) -> List[Any]:
    """Returns the flows of the argument `df_lists` in a new list, or raises an error."""
    name = type(owner).__name__
    if hasattr(df_lists, "reset_state") or not hasattr(df_lists, "__iter__"):
        raise TypeError(
            f"{name} takes a list of flows, but got a {type(df_lists).__name__}: {df_lists!r:.80}. "
            "Put a single flow into a list."
        )
    elements = list(df_lists)
    if not elements:
        raise ValueError(f"{name} is made from at least one flow, but the list is empty.")
    return elements


def state_or_reason(flow: DataFlow) -> Union[Dict[str, Any], str]:
    """Returns the state of a flow whose pass was just begun or advanced, or why there is none."""
    try:
        return why_late(flow) or state_of(flow)
    except StateNotKept as error:
        return str(error)


def why_late(flow: DataFlow) -> Optional[str]:
    """Returns why the state of a flow cannot be used if a part of it begins a pass late.

    A generator runs when it is first advanced. Until then the state is that of an earlier pass,
    and a loaded one is not used up.
    """
    for part in parts_of(flow):
        method = getattr(type(part), "state_dict", DataFlow.state_dict)
        late = inspect.isgeneratorfunction(getattr(type(part), "__iter__", None))
        if late and method is not DataFlow.state_dict:
            name = type(part).__name__
            return (
                f"The state of {name} cannot be used here: {name}.__iter__() is a generator, so a "
                "pass begins only with its first datapoint. Let __iter__() begin it, that is, use "
                "a loaded state and note the position, and return a generator for the rest."
            )
    return None


def _shared_part(flows: List[DataFlow]) -> Optional[Tuple[int, int, DataFlow]]:
    """Returns the positions of two flows in a list, and a flow that both are made from."""
    owners: Dict[int, int] = {}
    for position, flow in enumerate(flows):
        for part in parts_of(flow):
            owner = owners.setdefault(id(part), position)
            if owner != position:
                return owner, position, part
    return None


def parts_of(flow: DataFlow) -> Iterator[DataFlow]:
    """Yields a flow and the flows in its attributes, recursively, each once."""
    found = {id(flow)}
    waiting = [flow]
    while waiting:
        part = waiting.pop()
        yield part
        inner: List[Any] = list(getattr(part, "__dict__", {}).values())
        if isinstance(part, CombinedDataFlow):
            inner += part.df_lists
        for each in inner:
            if isinstance(each, DataFlow) and id(each) not in found:
                found.add(id(each))
                waiting.append(each)
