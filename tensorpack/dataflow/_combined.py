"""The base of flows made from several others, and the rule for when their state can be kept."""

import contextlib
import inspect
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ._flow import call_optional, is_flow, not_a_state, what_instead
from .base import DataFlow, ResumableDataFlow, StateNotKept, state_of


class CombinedDataFlow(ResumableDataFlow):
    """A flow made from several others, `df_lists`, at least one."""

    _INNER: Tuple[str, ...] = ("flows",)
    # Whether a pass goes through all flows at the same time, not through one after another.
    _at_once = False

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
        return all(getattr(flow, "seeded", True) for flow in self._distinct)

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
        late = next(filter(None, map(_why_late, self._distinct)), None)
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
        return _why_late(flow) or state_of(flow)
    except StateNotKept as error:
        return str(error)


def _why_late(flow: DataFlow) -> Optional[str]:
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
