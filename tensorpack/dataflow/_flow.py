"""What counts as a flow, its length, what it holds for one process, and checks of a state."""

import functools
import os
import threading
from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, TypeVar

from tensorpack.utils.checks import as_count, kind_of

T = TypeVar("T")


class ProcessLocal(Generic[T]):
    """Holds a value that belongs to one process, such as threads, a connection or an open file.

    A forked or unpickled copy starts without the value and makes its own. The value of the parent
    process stays referenced in a forked copy but is not used: closing or deleting it could act on
    what the parent still uses.
    """

    def __init__(self, make: Callable[..., T]) -> None:
        """`make` makes the value. It is a function of a module, or a class: a method of the flow
        would keep the flow alive, and a lambda cannot be pickled.
        """
        self._make = make
        self._held: Optional[Tuple[int, T]] = None
        self._inherited: List[T] = []
        self._making = threading.RLock()

    def get(self, *args: Any) -> T:
        """Returns the value of this process; makes it from `args` if there is none."""
        held = self._held
        if held is not None and held[0] == os.getpid():  # for speed: readers ask for each record
            return held[1]
        value = self.current()
        if value is None:
            with self._making:  # two threads would make two
                value = self.current()
                if value is None:
                    value = self._make(*args)
                    self._held = os.getpid(), value
        return value

    def current(self) -> Optional[T]:
        """Returns the value of this process, or None."""
        held = self._held  # read once, for another thread may take it
        if held is not None and held[0] != os.getpid():
            self._inherited.append(held[1])
            self._held = held = None
        return None if held is None else held[1]

    def take(self) -> Optional[T]:
        """Removes and returns the value of this process, or returns None."""
        value, self._held = self.current(), None
        return value

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._make,)


def call_optional(flow: Any, name: str) -> None:
    """Calls a method without arguments that a flow which is not a `DataFlow` may lack."""
    method = getattr(flow, name, None)
    if method is not None:
        method()


def is_flow(value: Any) -> bool:
    """Returns whether an object can be iterated and reset, be it a `DataFlow` or not."""
    has_methods = hasattr(value, "__iter__") and hasattr(value, "reset_state")
    return has_methods and not isinstance(value, type)


def what_instead(value: Any) -> str:
    """Describes a `value` that is not a flow, and the next move, for an error message."""
    return f"{kind_of(value)}. Wrap a list in DataFromList, another iterable in DataFromIterable."


def not_a_state(flow: Any, why: str) -> ValueError:
    """Returns the error of a state that is loaded into another flow than it is of."""
    return ValueError(
        f"This is not a state of {type(flow).__name__}: {why}. Load a state into a flow that "
        "is made as the one it came from."
    )


def check_state(flow: Any, state: Any, names: Iterable[str]) -> None:
    """Raises ValueError unless the state of a flow is a dict of exactly these names."""
    if not isinstance(state, dict) or set(state) != set(names):
        keys = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise not_a_state(flow, f"it needs {sorted(set(names))}, but got {keys}")


def form_of(datapoint: Any) -> str:
    """Returns what the datapoints of a file or batch have alike: `a dict of image, label`."""
    parts = "something else"
    if isinstance(datapoint, dict):
        parts = ", ".join(sorted(map(str, datapoint)))
    elif isinstance(datapoint, (list, tuple)):
        parts = f"{len(datapoint)} components"
    return f"a {type(datapoint).__name__} of {parts}"


def in_order(
    numbered: Iterable[Tuple[int, Any]], early: Optional[Dict[int, Any]] = None
) -> Iterator[Tuple[int, Any]]:
    """Yields what is numbered from 0 on in the order of its numbers, with them.

    `early` has, by number, what has come before its turn.
    """
    early = {} if early is None else early
    wanted = 0
    for number, item in numbered:
        early[number] = item
        item = None  # nothing here keeps it
        while wanted in early:
            wanted += 1
            yield wanted - 1, early.pop(wanted - 1)


class UnknownLength(TypeError, NotImplementedError):
    """The number of datapoints in a pass is not known, or the pass has no end.

    A `TypeError` for `len(flow)` and a `NotImplementedError` for `flow.size()`.
    """


def checked_length(function: Callable[[Any], Any], name: str) -> Callable[[Any], int]:
    """Makes a `__len__` of a method that may raise NotImplementedError, which `len` must not.

    A result that is not a count raises ValueError, because callers that use a length if there is
    one, such as `list` and tqdm, ignore a TypeError.
    """

    @functools.wraps(function)
    def length(self: Any) -> int:
        try:
            return as_count(self, f"what {name}() returns", function(self), 0)
        except UnknownLength:
            raise
        except NotImplementedError as error:
            raise UnknownLength(
                f"The length of {type(self).__name__} is not known: its {name}() raised {error!r}."
            ) from error

    return length


def endless(flow: Any) -> UnknownLength:
    """Returns the error of a flow whose length its producers decide."""
    return UnknownLength(
        f"The length of {type(flow).__name__} is not known: its producers decide when it ends. "
        "Wrap it in FixedSizeData(ds, size) for passes of a known length, or do without it, for "
        "example by giving steps_per_epoch yourself."
    )


def length_of(flow: Any) -> int:
    """Returns `len(flow)`; raises `UnknownLength` also if `flow` has no `__len__`."""
    if getattr(type(flow), "__len__", None) is None:
        name = type(flow).__name__
        raise UnknownLength(f"The length of {name} is not known: define {name}.__len__().")
    return len(flow)


def length_or_none(flow: Any) -> Optional[int]:
    """Returns the number of datapoints in a pass, or None if it is not known.

    Unlike `operator.length_hint`, it raises a TypeError that is a mistake in `__len__`.
    """
    try:
        return length_of(flow)
    except NotImplementedError:  # UnknownLength is one
        return None
