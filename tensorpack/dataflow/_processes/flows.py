"""The bases of flows with worker processes: how they get worker pools, and give them inputs."""

import multiprocessing
import threading
from multiprocessing import util
from typing import Any, Callable, Dict, Iterator, List, Optional

from tensorpack.utils.checks import as_count

from .._flow import ProcessLocal
from ..base import DataFlow, ProxyDataFlow, RNGDataFlow, StateNotKept
from .pool import WorkerPool
from .start_method import is_worker


class WorkerPools:
    """The pools of a flow in one process. A pool works for one pass at a time.

    They are closed when `owner`, the flow, is gone, or when this interpreter ends.
    """

    def __init__(self, owner: Any) -> None:
        self._lock = threading.RLock()  # a signal handler may close a flow that starts
        self._all: List[WorkerPool] = []
        self.sharing = threading.Lock()  # held while a pass begins with a pool of all passes
        # This comes before multiprocessing asks its children to leave and waits for them, for
        # ever if one of them is stopped.
        util.Finalize(owner, self.close, exitpriority=1)

    def take(self, make: Callable[[], WorkerPool], alone: bool = True) -> WorkerPool:
        """Returns a pool, made by `make` if there is none; if `alone`, one that is not `in_use`,
        and now it is.
        """
        with self._lock:
            pools = self._all = [pool for pool in self._all if not pool.closed]
            pool = next((pool for pool in pools if not (alone and pool.in_use)), None)
            if pool is None:
                pool = make()
                pools.append(pool)
                if self._all is not pools:  # the handler has closed the flow
                    pool.close()
            pool.in_use |= alone
            return pool

    def restart(self) -> None:
        """Has the next pass begin with new inputs where all passes share a pool."""
        for pool in self._all:
            pool.has_begun = False

    def close(self) -> None:
        """Ends all workers; passes that wait for them end as well."""
        with self._lock:
            pools, self._all = self._all, []
        for pool in pools:
            pool.close()


class ProcessFlow(ProxyDataFlow, RNGDataFlow):
    """A flow whose passes use worker processes. `buffer_bytes` bounds what is in flight.

    In a worker, where it cannot have any, it makes the same data without them and has no state.
    """

    strict = False
    environments: Optional[List[Dict[str, str]]] = None  # what each worker has besides
    _STATE: Dict[str, Any] = {}  # of a subclass; only strict passes have a position

    def __init__(
        self, ds: DataFlow, num_proc: int, buffer_bytes: float, start_method: Optional[str]
    ) -> None:
        super().__init__(ds)
        self.num_proc = as_count(self, "num_proc", num_proc)
        if start_method is not None:
            multiprocessing.get_context(start_method)  # a ValueError if there is none
        self._buffer_bytes = as_count(self, "buffer_bytes", buffer_bytes)
        self._start_method = start_method
        self._local = ProcessLocal(WorkerPools)
        self._local.get(self)

    @property
    def _pools(self) -> WorkerPools:
        """The pools of this process; a forked or unpickled copy of the flow has its own."""
        return self._local.get(self)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass. It raises `DataFlowTerminated` once the flow is closed, `WorkerDied` where
        a process left no report, and else what was raised in one, or a `WorkerFailed`.
        """
        return iter(self._without_processes()) if is_worker() else self._begin()

    def start_processes(self) -> None:
        """Starts the processes if there are none yet."""
        if not is_worker():
            self._pools.take(self._make_pool, alone=False)

    def close(self) -> None:
        """Ends the processes, and closes the wrapped flow. It can be used again, with new ones."""
        try:
            super().close()
        finally:
            self._pools.close()

    @property
    def seeded(self) -> bool:
        """Whether the same data comes again, in the same order, when the program is run again."""
        return super().seeded and (self.strict or self.num_proc == 1)

    _begin: Callable[[], Iterator[Any]]  # begins a pass by the processes
    _without_processes: Callable[[], DataFlow]  # returns a flow that makes the same in this process
    _make_pool: Callable[[], WorkerPool]

    def _check_keeps_state(self) -> None:
        if is_worker():
            raise StateNotKept(f"{type(self).__name__} keeps no state inside of another process.")
        if not self.strict:
            name = type(self).__name__
            raise StateNotKept(
                f"{name} keeps no state: define {name}.state_dict() and load_state_dict(), in a "
                "class of your own, or use MultiProcessMapData with strict=True. Otherwise the "
                "order depends on how fast each process is."
            )
