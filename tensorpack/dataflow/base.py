"""The contract of every dataflow: an iterable of datapoints that can be iterated again."""

import functools
import inspect
import threading
import types
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from tensorpack.utils.legacy_names import give_both_names, owner_of
from tensorpack.utils.rng import get_rng, is_seeded, rng_state, set_rng_state

from ._flow import (
    UnknownLength,
    call_optional,
    check_state,
    checked_length,
    is_flow,
    length_of,
    what_instead,
)


class DataFlowTerminated(Exception):
    """No more data can come, for example because the other end of a connection is gone."""


class DataFlowReentrantGuard:
    """A `with` block for the body of `__iter__`, which only one pass at a time may be in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise RuntimeError(
                "This flow has two passes at once: end one before you begin another."
            )

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()


class StateNotKept(NotImplementedError):
    """A flow has no state, so another process can only repeat its data from the start."""


class DataFlow:
    """An iterable of datapoints. A consumer does this, and only this::

        flow.reset_state()           # in the process that iterates, before the first datapoint
        for datapoint in flow:       # one pass; every iter(flow) begins another
            ...

    A **datapoint** is a list (or tuple) of components, or a dict of them. A consumer may keep it,
    because a flow never writes to a datapoint it has yielded. A consumer that changes one copies it
    first, as `MapData` does, because it may belong to the source.

    **Passes are independent.** `iter(flow)` may be called again before an earlier pass is over,
    and a pass may be abandoned anywhere; neither changes what another pass yields, unless the
    class says that its source can be read only once.

    **Length.** `len(flow)` is the number of datapoints in a pass, or raises `UnknownLength`. A
    `__len__` or `size` that returns anything but an int of at least 0 raises a ValueError.

    **Reset.** `reset_state()` gives the flow what it must not share with another process, such as a
    random stream of its own. It may be called any number of times between passes. A flow of this
    package also works without it, but a forked or unpickled copy then draws the same random numbers
    as the original.

    **State.** A flow may keep a state, so that another process can resume its data with a flow that
    is made in the same way. It describes the random stream and the pass that was begun or advanced
    last. A loaded state is used once, by the next `iter(flow)`, which yields what that pass had
    not; the one after it is a full pass, as it would have been there; `reset_state` discards it. A
    class that defines `__iter__` but not `state_dict` keeps no state, even if its base class does.
    Without a state, the data of a run can be repeated from its seed if the flow is `seeded`.

    Subclasses define `__iter__`, `__len__` if they can, `reset_state` if they must, `state_dict`
    and `load_state_dict` if the data is long or cannot be made again. The names of 2017,
    `get_data` and `size`, work too, both to define and to call: within each class they are the
    same method.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        give_both_names(cls, "__iter__", "get_data", _as_iter)
        length = vars(cls).get("__len__")
        if isinstance(length, types.FunctionType):
            cls.__len__ = checked_length(length, "__len__")  # type: ignore[method-assign]
        give_both_names(cls, "__len__", "size", functools.partial(checked_length, name="size"))
        rank = cls.__mro__.index
        if rank(owner_of(cls, "__iter__")) < rank(owner_of(cls, "state_dict", "_STATE")):
            cls.state_dict = DataFlow.state_dict  # type: ignore[method-assign]
            cls.load_state_dict = DataFlow.load_state_dict  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass; NotImplementedError if the class does not define it."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} yields nothing yet: define {name}.__iter__().")

    def __len__(self) -> int:
        """Returns the number of datapoints in a pass, or raises `UnknownLength`."""
        name = type(self).__name__
        raise UnknownLength(
            f"The length of {name} is not known. Define {name}.__len__() if every pass has the "
            "same number of datapoints, or do without it, for example by giving "
            "steps_per_epoch yourself."
        )

    def __bool__(self) -> bool:
        """Returns True: a test whether there is a flow must not ask for its length."""
        return True

    def reset_state(self) -> None:
        """Prepares the flow for passes in this process; may be called again."""

    def state_dict(self) -> Dict[str, Any]:
        """Returns the position of the flow, see "State" above; a `StateNotKept` if it has no state.

        Override it together with `load_state_dict`. It may be called after every datapoint, by the
        thread that iterates, so it must be quick: return references to objects that are never
        changed again, in a tree of dictionaries (keys are strings), lists, tuples, None, booleans,
        numbers, text, bytes and numpy arrays without objects.
        """
        raise _state_not_kept(self)

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Lets the next pass continue where `state_dict` was called; call it after `reset_state`.

        The state is not changed. A ValueError is raised if it is one of another flow, a
        `StateNotKept` if the flow, or one that it is made from, keeps none.
        """
        raise _state_not_kept(self)

    @property
    def seeded(self) -> bool:
        """Whether the same data comes again when the program is run again."""
        return True

    def start_processes(self) -> None:
        """Starts the worker processes that passes will need, if there are any.

        A flow starts them when it is used. Call this before if that is too late: a process can be
        forked safely only while it has no TensorFlow session.
        """

    def close(self) -> None:
        """Releases the processes, threads, connections and files of passes.

        Any thread may call it. A pass that is under way ends with `DataFlowTerminated` at the
        latest when it has to wait. Afterwards the flow can be reset and iterated again.
        """

    get_data = __iter__
    size = __len__


def _as_iter(get_data: Callable[[Any], Any]) -> Callable[[Any], Iterator[Any]]:
    """Makes an `__iter__` of a `get_data`, which may return any iterable."""
    if inspect.isgeneratorfunction(get_data):
        return get_data

    return functools.wraps(get_data)(lambda self: iter(get_data(self)))


class ResumableDataFlow(DataFlow):
    """A flow that notes its position in a pass, so that the next pass may continue there.

    A subclass declares its state. `_STATE` has the parts of a position, with their values before
    the first pass: the flow sets `_position` to a tuple of them when it begins a pass and with each
    datapoint, and begins a pass with `_take_loaded()`. `_INNER` has what keeps a state itself: "ds"
    for `_state_of_ds()` and `_load_ds(state)`. A name may be in both: it is then saved from the
    position, as the random stream before a pass is, and loaded as `_INNER`. In the place of the
    state of `ds` a position may have the reason, a text, why there is none. `RepeatedData` is a
    short example.
    """

    _STATE: Dict[str, Any] = {}
    _INNER: Tuple[str, ...] = ()
    _position: Any = None  # in the pass that was begun or advanced last; None before the first
    _loaded: Any = None  # where the next pass continues; None at the beginning

    def reset_state(self) -> None:
        super().reset_state()
        self._go_to(None)

    def _go_to(self, position: Any) -> None:
        if self._STATE:  # without a position, these are names that a script may use for something
            self._position = self._loaded = position

    def _take_loaded(self) -> Any:
        """Returns the loaded position, or None; the next call returns None."""
        loaded, self._loaded = self._loaded, None
        return loaded

    def _first_position(self) -> Tuple[Any, ...]:
        """Returns the position before the first pass."""
        inner = {name: self._state_of(name) for name in self._INNER if name in self._STATE}
        return tuple({**self._STATE, **inner}.values())

    def _save_position(self, *position: Any) -> Tuple[Any, ...]:
        """Returns the values of `_STATE` for a position; they are never changed again."""
        return position

    def _restore_position(self, *values: Any) -> Tuple[Any, ...]:
        """Returns the position for values of `_STATE`; a ValueError if they are of another flow."""
        return values

    def _check_keeps_state(self) -> None:
        """Raises StateNotKept if the flow, as it was made, has no state."""

    def state_dict(self) -> Dict[str, Any]:
        self._check_keeps_state()
        state: Dict[str, Any] = {}
        if self._STATE:
            position = self._first_position() if self._position is None else self._position
            state = dict(zip(self._STATE, self._save_position(*position)))
        for name in self._INNER:
            if name not in state:
                state[name] = self._state_of(name)
        if isinstance(state.get("ds"), str):
            raise StateNotKept(state["ds"])
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._check_keeps_state()
        check_state(self, state, [*self._INNER, *self._STATE])
        position = self._restore_position(*(state[name] for name in self._STATE))
        for name in self._INNER:
            getattr(self, f"_load_{name}")(state[name])
        self._go_to(position)

    def _state_of(self, name: str) -> Any:
        return getattr(self, f"_state_of_{name}")()


class ProxyDataFlow(ResumableDataFlow):
    """A flow made from another one, and equal to it where nothing is overridden.

    Attributes:
      ds: the wrapped flow.
    """

    _STATE: Dict[str, Any] = {}
    _INNER: Tuple[str, ...] = ("ds",)

    def __init__(self, ds: DataFlow) -> None:
        """Wraps the flow `ds`; a TypeError if it is not one."""
        if not is_flow(ds):
            raise TypeError(f"{type(self).__name__} wraps a DataFlow, but got {what_instead(ds)}")
        self.ds = ds

    def __iter__(self) -> Iterator[Any]:
        return self._transform(iter(self.ds))

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        """Makes a pass of one of the wrapped flow. A class that overrides this keeps its state."""
        return datapoints

    def __len__(self) -> int:
        return length_of(self.ds)

    def reset_state(self) -> None:
        super().reset_state()
        self.ds.reset_state()

    @property
    def seeded(self) -> bool:
        return getattr(self.ds, "seeded", True) and super().seeded

    def start_processes(self) -> None:
        call_optional(self.ds, "start_processes")

    def close(self) -> None:
        call_optional(self.ds, "close")

    def _state_of_ds(self) -> Dict[str, Any]:
        return state_of(self.ds)

    def _load_ds(self, state: Dict[str, Any]) -> None:
        self.ds.load_state_dict(state)


class RNGDataFlow(ResumableDataFlow):
    """A flow that draws random numbers.

    `reset_state` gives it a new random stream, different from that of every other object and
    process, and the same in every run of a program that calls `fix_rng_seed`.
    """

    _rng: Optional[np.random.RandomState] = None

    @property
    def rng(self) -> np.random.RandomState:
        """The random stream."""
        if self._rng is None:
            self._rng = get_rng(self)
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.RandomState) -> None:
        self._rng = rng

    def reset_state(self) -> None:
        self._rng = get_rng(self)
        super().reset_state()

    def _state_of_rng(self) -> Dict[str, Any]:
        return rng_state(self.rng)

    def _load_rng(self, state: Dict[str, Any]) -> None:
        set_rng_state(self.rng, state)

    @property
    def seeded(self) -> bool:
        """Whether `fix_rng_seed` was called."""
        return is_seeded() and super().seeded

    def rng_of_pass(self) -> np.random.RandomState:
        """Returns a stream for one pass, so that passes at the same time do not share draws."""
        return np.random.RandomState(self.rng.randint(0, 2**32, size=8, dtype=np.uint32))


def state_of(flow: Any) -> Dict[str, Any]:
    """Returns the state of a flow, which need not be a `DataFlow`."""
    if not hasattr(flow, "state_dict"):
        raise _state_not_kept(flow)
    return flow.state_dict()


def _state_not_kept(flow: Any) -> StateNotKept:
    name = type(flow).__name__
    return StateNotKept(
        f"{name} keeps no state: define {name}.state_dict() and load_state_dict(), beside "
        f"{name}.__iter__(), so that its data can be resumed in another process."
    )
