"""What flows have in common whose datapoints go to worker processes and come back."""

import os
from typing import Any, Callable, Dict, Optional

import numpy as np

from tensorpack.utils.checks import check_counts, check_sizes
from tensorpack.utils.processes import usable_cores
from tensorpack.utils.rng import get_rng

from ..base import DataFlow, ProxyDataFlow, RNGDataFlow
from ..map import checked_function
from .channel import Limits
from .orders import Orders
from .start_method import choose_start_method
from .team import Team
from .team_pool import TeamPool
from .worker_seeds import MOST_SEED, seed_process

__all__ = ["ProcessMap"]


class ProcessMap(ProxyDataFlow, RNGDataFlow):
    """A flow whose datapoints go to processes and come back as something else.

    Args:
      ds: the flow, iterated in this process.
      num_proc: the number of processes; by default as many as there are cores.
      func: called there.
      most: how many inputs may be on the way.
      buffer_bytes: how many bytes of results may be on the way, and as many of inputs.
      start_method: as in `MultiProcessRunner`.
    """

    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int],
        func: Optional[Callable[[Any], Any]],
        most: int,
        buffer_bytes: int,
        start_method: Optional[str],
    ) -> None:
        super().__init__(ds)
        if num_proc is None:
            num_proc = usable_cores()
        check_counts(self, num_proc=num_proc, buffer_size=most)
        check_sizes(self, buffer_bytes=buffer_bytes)
        if start_method is not None:
            choose_start_method(start_method)
        self.num_proc = num_proc
        self.func = checked_function(self, func)
        self._most = most
        self._limits = Limits.of(most + num_proc, buffer_bytes, num_proc, others=num_proc)
        self._start_method = start_method
        self._prepare()

    def _prepare(self) -> None:
        """Sets up what belongs to one process and cannot be sent to another."""
        self._teams = TeamPool(self)
        self._owner = os.getpid()

    def reset_state(self) -> None:
        """Resets the flow, and starts the processes if there are none."""
        RNGDataFlow.reset_state(self)
        self.ds.reset_state()
        self.start_processes()

    def start_processes(self) -> None:
        """Starts the processes if there are none yet."""
        super().start_processes()
        self._leave_fork()
        self._teams.prepare(self._make_team)

    def close(self) -> None:
        """Ends the processes. The flow can be used again, by new ones."""
        try:
            super().close()
        finally:
            if self._owner == os.getpid():
                self._teams.close()

    def _leave_fork(self) -> None:
        if self._owner != os.getpid():  # a forked copy: the processes are those of the original
            self._prepare()

    def _make_team(self) -> Team:
        return Team(
            _answer,
            (self._work(), int(get_rng(self).randint(0, MOST_SEED, dtype=np.int64))),
            ("map_func", self.func),
            self.num_proc,
            self._limits,
            choose_start_method(self._start_method),
            type(self).__name__,
            self._limits,
        )

    def _work(self) -> Callable[[Any], Any]:
        """What a process calls with each input."""
        raise NotImplementedError(f"{type(self).__name__} does nothing yet: define _work().")

    def __getstate__(self) -> Dict[str, Any]:
        own = ("_teams", "_owner")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()


def _answer(orders: Orders, index: int, work: Callable[[Any], Any], seed: int) -> None:
    """What a process does, with a stream of random numbers of its own."""
    seed_process(seed + index)
    orders.answer(work)
