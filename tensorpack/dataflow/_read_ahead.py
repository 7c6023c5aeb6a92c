"""The base of flows that read ahead, and which parts of a flow have a state that can be used."""

import collections
import inspect
from typing import Any, Deque, Dict, Iterator, Optional, Union

from ._flow import call_optional
from .base import DataFlow, ProxyDataFlow, StateNotKept, state_of

_END = object()


class ReadAheadFlow(ProxyDataFlow):
    """A flow whose passes read `ds`, by a `ReadAhead`, before what they read is given out.

    A pass may be left anywhere. Before the next one begins, `ds` is put back to the state behind
    what was given out, so that how far the pass had read makes no difference. Where there is no
    such state, the flow is not `seeded` from then on.
    """

    strict = False  # whether the order of `ds` is kept
    _place: Optional["_Place"] = None  # of the pass that was begun last; None if `ds` is elsewhere
    _astray = False  # whether what a pass gives may depend on how far another one had read
    _restorable: Optional[bool] = None

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
        if self._restorable is None:
            self._restorable = self.strict and not isinstance(state_or_reason(self.ds), str)
        return self._restorable

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
        if not isinstance(self._newest, str):
            self._note_state()
        self.finish()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._flow._place is not self.place:
            self._flow._astray = True
        self.read += 1
        self.place.is_ahead = True
        datapoint = next(self._datapoints, _END)
        if not isinstance(self._newest, str):
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
        try:
            self._newest = state_of(self._flow.ds)
        except StateNotKept as error:
            self._newest = str(error)  # and it is not asked again after every datapoint


def may_be_left(flow: DataFlow) -> bool:
    """Returns whether later passes of a flow are the same wherever one is left."""
    return all(part._keeps_place() for part in parts_of(flow) if isinstance(part, ReadAheadFlow))


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


def parts_of(flow: DataFlow) -> Iterator[DataFlow]:
    """Yields a flow and the flows in its attributes, recursively, each once."""
    seen = {id(flow)}
    waiting = [flow]
    while waiting:
        part = waiting.pop()
        yield part
        for value in [*getattr(part, "__dict__", {}).values(), *getattr(part, "df_lists", ())]:
            if isinstance(value, DataFlow) and id(value) not in seen:
                seen.add(id(value))
                waiting.append(value)
