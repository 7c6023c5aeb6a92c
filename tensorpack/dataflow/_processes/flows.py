"""The bases of flows with worker processes: how they get worker pools, and give them inputs."""

import threading
from contextlib import suppress
from multiprocessing import util
from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Optional, Tuple

from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import get_rng
from tensorpack.utils.workers.processes import usable_cores

from .._combined import ReadAhead, ReadAheadFlow
from .._flow import ProcessLocal, in_order
from ..base import DataFlow, DataFlowTerminated, ProxyDataFlow, RNGDataFlow, StateNotKept
from ..map import checked_function
from .channel import Limits
from .pickled import Packed, pack
from .pool import Failure, WorkerPool
from .start_method import choose_start_method, is_worker
from .worker_loop import Environments, apply_or_note, draw_seed, map_inputs


class WorkerPools:
    """The pools of a flow in one process. A pool works for one pass at a time.

    They are closed when `owner`, the flow, is gone, or when this interpreter ends.
    """

    def __init__(self, owner: Any) -> None:
        self._lock = threading.Lock()
        self._idle: List[WorkerPool] = []
        self._all: List[WorkerPool] = []
        self.sharing = threading.Lock()  # held while objects are taken from `shared`
        self.shared: Optional[WorkerPool] = None  # a pool that all passes take from
        # This comes before multiprocessing asks its children to leave and waits for them, for
        # ever if one of them is stopped.
        util.Finalize(owner, self.close, exitpriority=1)

    def prepare(self, make: Callable[[], WorkerPool]) -> None:
        """Makes a pool if there is none, or those that there are have failed."""
        if all(pool.closed for pool in self._all):
            self.give_back(self.take(make))

    def take(self, make: Callable[[], WorkerPool]) -> WorkerPool:
        """Returns an idle pool, made by `make` if there is none."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            open_pools = self._all  # until `close` puts another list in its place
        pool = make()
        with self._lock:
            if self._all is open_pools:
                self._all.append(pool)
                return pool
        pool.close()
        raise DataFlowTerminated("The flow was closed while its processes were being started.")

    def give_back(self, pool: WorkerPool) -> None:
        """Takes an idle pool back; forgets it if it was closed."""
        with self._lock:
            if pool in self._all:
                (self._all.remove if pool.closed else self._idle.append)(pool)

    def stop_sharing(self) -> None:
        """Makes the shared pool idle."""
        pool, self.shared = self.shared, None
        if pool is not None:
            self.give_back(pool)

    def close(self) -> None:
        """Ends all workers; passes that wait for them end as well."""
        with self._lock:
            pools, self._all, self._idle, self.shared = self._all, [], [], None
        for pool in pools:
            pool.close()


class ProcessFlow(ProxyDataFlow, RNGDataFlow):
    """A flow whose passes use worker processes. `buffer_bytes` bounds what is in flight.

    In a worker, where it cannot have any, it makes the same data without them and has no state.
    """

    strict = False
    environments: Environments = None
    _STATE: Dict[str, Any] = {}  # of a subclass; only strict passes have a position

    def __init__(
        self, ds: DataFlow, num_proc: int, buffer_bytes: float, start_method: Optional[str]
    ) -> None:
        super().__init__(ds)
        self.num_proc = as_count(self, "num_proc", num_proc)
        if start_method is not None:
            choose_start_method(start_method)
        self._buffer_bytes = as_count(self, "buffer_bytes", buffer_bytes)
        self._start_method = start_method
        self._local = ProcessLocal(WorkerPools)
        self._local.get(self)

    @property
    def _pools(self) -> WorkerPools:
        """The pools of this process; a forked or unpickled copy of the flow has its own."""
        return self._local.get(self)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          DataFlowTerminated: the flow was closed meanwhile.
          WorkerDied: a process died without a report, or could not start.
          Exception: what was raised in a process, with its traceback as the cause; a `WorkerFailed`
            if it cannot be pickled.
        """
        return iter(self._without_processes()) if is_worker() else self._begin()

    def start_processes(self) -> None:
        """Starts the processes if there are none yet."""
        if not is_worker():
            self._pools.prepare(self._make_pool)

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


class ProcessMap(ReadAheadFlow, ProcessFlow):
    """A flow whose datapoints go to processes, which call `func`, and come back as something else.

    At most `most` inputs may be in flight, `buffer_bytes` of results, and as many of inputs.
    """

    _work: Callable[[Any], Any]  # what a process calls with each input

    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int],
        func: Optional[Callable[[Any], Any]],
        most: int,
        buffer_bytes: float,
        start_method: Optional[str],
    ) -> None:
        num_proc = usable_cores() if num_proc is None else num_proc
        super().__init__(ds, num_proc, buffer_bytes, start_method)
        num_proc = self.num_proc
        self.func = checked_function(self, func)
        self._most = most = as_count(self, "buffer_size", most)
        self._limits = Limits.of(most + num_proc, self._buffer_bytes, num_proc, others=num_proc)

    def reset_state(self) -> None:
        super().reset_state()
        self.start_processes()

    def start_processes(self) -> None:
        ProxyDataFlow.start_processes(self)
        super().start_processes()

    def _results(self, inputs: Iterable[Any], source: ReadAhead) -> Generator[Any, None, None]:
        """Yields what the processes make of inputs, None among it; in their order if strict."""
        early: Dict[int, Any] = {}
        pool = self._pools.take(self._make_pool)
        try:
            ready = _numbered_results(pool, map(self._pack, inputs), self._most, early)
            for _, result in in_order(ready, early) if self.strict else ready:
                source.give()
                if isinstance(result, Failure):
                    raise result.error
                yield result
                result = None  # the pool may wait for its memory
            source.finish()
        finally:
            self._pools.give_back(pool)

    def _pack(self, given: Any) -> Packed:
        with suppress(TypeError, ValueError):
            return pack(given)
        for item in given if isinstance(given, list) else [given]:
            apply_or_note(type(self).__name__, pack, item)  # places count from the datapoint
        return pack(given)

    def _make_pool(self) -> WorkerPool:
        return WorkerPool(
            map_inputs,
            (self.environments, type(self).__name__, self._work, draw_seed(get_rng(self))),
            ("map_func", self.func),
            self.num_proc,
            self._limits,
            choose_start_method(self._start_method),
            type(self).__name__,
            self._limits,
        )


def _numbered_results(
    pool: WorkerPool, inputs: Iterable[Packed], most: int, kept: Dict[int, Any]
) -> Iterator[Tuple[int, Any]]:
    """Yields the numbers of inputs and their results, as they become ready.

    At most `most` inputs are in flight, less the results that the caller keeps back. What the
    inputs raise comes after all results before that; the error of a worker that ended comes at
    once. The pool may still be busy with what was sent before.
    """
    source = enumerate(inputs)
    following: Optional[Tuple[int, Packed]] = None
    numbers: Dict[int, int] = {}  # of the inputs in flight, by their tags
    is_over = False
    error: Optional[Exception] = None
    while True:
        if following is None and not is_over and len(numbers) + len(kept) < most:
            try:
                following = next(source, None)
                is_over = following is None
            except Exception as caught:
                is_over, error = True, caught
        if following is not None:
            tag = pool.send(following[1])
            if tag is not None:
                numbers[tag], following = following[0], None
            item = pool.take_if(or_room=tag is None)
        elif numbers:
            item = pool.take()
        else:
            break
        if item is not None and item[0] in numbers:  # else it belongs to a pass that was left
            yield numbers.pop(item[0]), item[1]
        item = None  # the pool may wait for its memory
    if error is not None:
        try:
            raise error
        finally:
            error = None  # it would keep itself, by this frame
