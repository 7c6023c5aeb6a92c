"""A function applied to datapoints in worker processes, while the flow itself stays here."""

from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from tensorpack.utils.rng import rng_state, set_rng_state

from ._combined import state_or_reason
from ._flow import check_state
from ._legacy_names import accepts_old_keywords
from ._processes.answers import answers_as_they_come, answers_in_order
from ._processes.map import ProcessMap
from ._processes.worker_seeds import MOST_SEED, DatapointSeeds
from .base import DataFlow, RNGDataFlow, StateNotKept
from .map import apply_function

__all__ = ["MultiProcessMapData", "MultiProcessMapDataZMQ"]

_GIB = 2**30
_NAMES = ("ds", "rng", "number", "over")
_Position = Tuple[Dict[str, Any], Any, int]


class MultiProcessMapData(ProcessMap):
    """Applies a function to every datapoint in several processes, and drops those for which it
    returns None.

    A pass is one pass of the wrapped flow, which is iterated in this process; it ends when all
    results have been given out. `len` stays that of the wrapped flow, so it is too large if
    datapoints are dropped.

    **By default** results come in the order in which they are ready. **With `strict=True`** they
    come in the order of the wrapped flow, and what the function draws from `numpy.random` and
    `random` depends on the position of the datapoint alone, not on the processes; such a flow
    keeps a state, if the wrapped one does.

    What goes to the function and comes back can consist of the same things as the datapoints of a
    `MultiProcessRunner`, through the same shared memory: arrays are read-only on both sides. A list
    or dict is the function's own to change. What it raises is raised by whoever iterates, in strict
    flows at its place; the processes go on.
    """

    @accepts_old_keywords(nr_proc="num_proc")
    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        *,
        buffer_size: int = 200,
        strict: bool = False,
        buffer_bytes: int = _GIB,
        start_method: Optional[str] = None,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num_proc: the number of processes; by default as many as there are cores.
          map_func: takes a datapoint and returns a datapoint, or None to drop it.
          buffer_size: how many datapoints may have been taken from the flow and not yet be given
            out.
          strict: see above.
          buffer_bytes: how many bytes may be on the way to the processes, and as many back; a
            single datapoint may have more.
          start_method: as in `MultiProcessRunner`.

        Raises:
          TypeError: `map_func` cannot be called, or a number is no integer.
          ValueError: a number is less than one, or there is no such start method.
        """
        super().__init__(ds, num_proc, map_func, buffer_size, buffer_bytes, start_method)
        self.strict = strict
        self._forget()

    def _forget(self) -> None:
        # Of the pass that was begun or advanced last: the random stream at its begin, the state of
        # the flow behind what was given out (or why there is none), and the number of what is next.
        self._position: Optional[_Position] = None
        self._number = 0
        self._over = self._rest_is_over = False

    def reset_state(self) -> None:
        super().reset_state()
        self._forget()

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          DataFlowTerminated: the flow was closed meanwhile.
          TypeError: the function or a datapoint cannot be sent.
          WorkerDied: a process ended and could not say why.
          Exception: what the function raised, with its traceback as the cause; as a `WorkerFailed`
            unless it is a builtin exception.
        """
        self._leave_fork()
        if not self.strict:
            return self._as_they_come(iter(self.ds))
        if self._rest_is_over:  # what was loaded is the end of a pass
            self._rest_is_over = False
            return iter(self.ds)
        begin, number = rng_state(self.rng), self._number
        seed = int(self.rng.randint(0, MOST_SEED, dtype=np.int64))
        self._number, self._over = 0, False
        datapoints = iter(self.ds)
        self._position = begin, state_or_reason(self.ds), number
        return self._in_order(datapoints, seed, self._position)

    @property
    def seeded(self) -> bool:
        """Whether the same data comes again, in the same order, when the program is run again."""
        same = self.strict or self.num_proc == 1
        return same and RNGDataFlow.seeded.fget(self) and super().seeded  # type: ignore[attr-defined]

    def state_dict(self) -> Dict[str, Any]:
        """Returns where a strict pass is.

        Raises:
          StateNotKept: the flow is not strict, or the wrapped one keeps no state.
        """
        self._check_keeps_state()
        if self._position is None:
            ds, begin, number = self._state_of_ds(), rng_state(self.rng), 0
        else:
            begin, ds, number = self._position
        if isinstance(ds, str):
            raise StateNotKept(ds)
        return {"ds": ds, "rng": begin, "number": number, "over": self._over}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._check_keeps_state()
        check_state(self, state, _NAMES)
        self.ds.load_state_dict(state["ds"])
        set_rng_state(self.rng, state["rng"])
        self._number, self._over = state["number"], state["over"]
        self._rest_is_over = self._over
        self._position = None if self._over else (state["rng"], state["ds"], state["number"])

    def _check_keeps_state(self) -> None:
        if not self.strict:
            name = type(self).__name__
            raise StateNotKept(
                f"{name} keeps no state: define {name}.state_dict() and load_state_dict(), in a "
                "class of your own, or give strict=True. Without that the order depends on how "
                "fast each process is."
            )

    def _as_they_come(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        team = self._teams.take(self._make_team)
        try:
            inputs = ({"datapoint": datapoint} for datapoint in datapoints)
            for result in answers_as_they_come(team, inputs, self._most):
                if result is not None:
                    yield result
                result = None  # its memory may be waited for
        finally:
            self._teams.give_back(team)

    def _in_order(self, datapoints: Iterator[Any], seed: int, first: _Position) -> Iterator[Any]:
        begin, _, number = first
        behind: Dict[int, Any] = {}
        team = self._teams.take(self._make_team)
        try:
            inputs = self._numbered(datapoints, seed, first, behind)
            results = answers_in_order(team, inputs, self._most)
            for at, result in enumerate(results, number):
                self._position, self._over = (begin, behind.pop(at), at + 1), False
                if result is not None:
                    yield result
                result = None  # its memory may be waited for
            self._position, self._over = None, True
        finally:
            self._teams.give_back(team)

    def _numbered(
        self, datapoints: Iterator[Any], seed: int, first: _Position, behind: Dict[int, Any]
    ) -> Iterator[Any]:
        """Inputs of a strict pass; keeps the states of the flow behind them."""
        _, state, number = first
        for at, datapoint in enumerate(datapoints, number):
            behind[at] = state if isinstance(state, str) else self._state_of_ds()
            yield {"datapoint": datapoint, "number": at, "seed": seed}

    def _work(self) -> Callable[[Any], Any]:
        return _Map(self.func)


MultiProcessMapDataZMQ = MultiProcessMapData


class _Map:
    """What a process does with a datapoint."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func
        self._seeds: Tuple[Optional[int], Any] = (None, None)

    def __call__(self, item: Dict[str, Any]) -> Any:
        seed = item.get("seed")
        if seed is not None:
            if seed != self._seeds[0]:
                self._seeds = seed, DatapointSeeds(seed)
            self._seeds[1](item["number"])
        return apply_function(self._func, item["datapoint"])
