"""Flows that work in threads of this process: a function in several threads, and several flows.

Threads share memory, so nothing is copied or sent, but Python runs only one of them at a time. They
help where the work releases the interpreter: files, sockets, numpy, OpenCV.
"""

import sys
import threading
import time
import weakref
from contextlib import ExitStack, closing
from queue import SimpleQueue
from typing import Any, Callable, Dict, Generator, Iterable, Iterator, List, Optional

from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count
from tensorpack.utils.workers.processes import usable_cores

from ._flow import ProcessLocal, in_order, length_of, length_or_none
from ._read_ahead import ReadAhead, ReadAheadFlow
from .base import DataFlow, DataFlowTerminated, StateNotKept
from .map import apply_function, check_function, drop_none, note_datapoint
from .repeat import RepeatedData

_GRACE_SECONDS = 2.0
_END = object()


class MultiThreadMapData(ReadAheadFlow):
    """Applies a function to every datapoint in several threads; None drops the datapoint.

    Datapoints come as the function completes them. With `strict=True` they come in the order of
    `ds`, as of `MapData` if calls of the function share nothing, such as a random stream; it keeps
    a state if `ds` does. `len` is that of `ds`, also if some are dropped.

    The threads of a pass start with its first datapoint, and are joined however it ends; one whose
    call does not return within two seconds is left behind, with a warning. They read ahead in `ds`,
    one at a time. Of a strict pass that is left early this does not show: before the next one
    begins, `ds` is put back to behind what was yielded. If it keeps no state, the flow is not
    `seeded` from then on. An error is raised as soon as it is known, or if strict in its place.
    """

    _STATE = {"ds": None}  # that of `ds` after what was yielded last, or why there is none

    @accepts_old_keywords(nr_thread="num_thread")
    def __init__(
        self,
        ds: DataFlow,
        num_thread: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        buffer_size: int = 200,
        strict: bool = False,
    ) -> None:
        """
        Args:
          num_thread: the number of threads; None for the number of cores that may be used.
          map_func: takes a datapoint and returns a datapoint, or None to drop it. It may change the
            list or dict it gets; the components in it are not copied.
          buffer_size: how many datapoints may be taken from `ds` and not yet be yielded.
          strict: whether to keep the order of `ds`.
        """
        super().__init__(ds)
        num_thread = usable_cores() if num_thread is None else num_thread
        self.num_thread = as_count(self, "num_thread", num_thread)
        self.map_func = check_function(self, map_func)
        self.buffer_size = as_count(self, "buffer_size", buffer_size)
        self.strict = strict
        self._lock: ProcessLocal[threading.Lock] = ProcessLocal(threading.Lock)
        self._open: ProcessLocal[Any] = ProcessLocal(weakref.WeakValueDictionary)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass; its iterator raises DataFlowTerminated if the flow is closed or reset."""
        with self._lock.get():
            threads = _MapThreads(self)
        self._open.get()[id(threads)] = threads
        self._position = (threads.source.place.state,)
        return drop_none(self, self._pass(threads))

    def _pass(self, threads: "_MapThreads") -> Generator[Any, None, None]:
        try:
            for _, result in (in_order if self.strict else iter)(threads.results()):
                threads.check()
                threads.room.put(None)
                threads.source.give()
                if result[1] is not None:
                    raise result.pop()  # the error refers to this frame, which must not keep it
                self._position = (threads.source.place.state,)
                yield result.pop(0)
            threads.source.finish()
            self._position = (threads.source.place.state,)
        finally:
            if threads.close():
                threads.source.close()

    def reset_state(self) -> None:
        """Prepares the wrapped flow. Passes that are under way are over."""
        for threads in self._threads():
            threads.close()
        super().reset_state()

    def close(self) -> None:
        with ExitStack() as stack:
            for threads in self._threads():
                threads.stop()
                stack.callback(threads.close)
            super().close()  # before the threads are joined: one may wait in that flow

    def _threads(self) -> "List[_MapThreads]":
        """Returns those of the passes that are under way."""
        return list(filter(None, (ref() for ref in self._open.get().valuerefs())))

    def _load_ds(self, state: Dict[str, Any]) -> None:
        with self._lock.get():
            super()._load_ds(state)

    @property
    def seeded(self) -> bool:
        return super().seeded and (self.strict or self.num_thread == 1)

    def _check_keeps_state(self) -> None:
        if not self.strict:
            raise StateNotKept(
                f"{type(self).__name__} keeps no state in the order of completion, because what "
                "was yielded is not what was read first. With strict=True it keeps one."
            )


class MultiThreadRunner(DataFlow):
    """Iterates several flows, each in a thread of its own, and yields what comes first.

    The flows are repeated forever. A pass has as many datapoints of the mixture as the first of the
    flows has in one of its own; it has no end if that length is not known. Each pass continues
    where the one before it was left, and passes at the same time share the datapoints.

    The threads start at `reset_state`, which replaces flows and threads, or when a pass begins, and
    end at `close`, with this object, or at an error, which is raised as soon as it is known; the
    next pass has new flows. No state is kept.
    """

    @accepts_old_keywords(nr_prefetch="num_prefetch", nr_thread="num_thread")
    def __init__(self, get_df: Callable[[], DataFlow], num_prefetch: int, num_thread: int) -> None:
        """
        Args:
          get_df: returns a flow, another one each time. It is called once for each thread, in the
            thread that resets or iterates, where the flows are reset too.
          num_prefetch: how many datapoints may be made and not yet be yielded.
          num_thread: the number of threads and flows.
        """
        self.get_df = check_function(self, get_df)
        self.num_prefetch = as_count(self, "num_prefetch", num_prefetch)
        self.num_thread = as_count(self, "num_thread", num_thread)
        self._mixed = self.num_thread  # so many flows, in one pass
        self._mixture: ProcessLocal[_Mixture] = ProcessLocal(_Mixture)

    def __len__(self) -> int:
        return length_of(self._mixture.get(self).flows[0].ds)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass; its iterator raises DataFlowTerminated if the flow is closed or reset."""
        length = length_or_none(self._mixture.get(self).flows[0].ds)
        return self._pass(self._start_threads(), length)

    def _start_threads(self) -> "_Mixture":
        mixture = self._mixture.get(self)
        try:
            with mixture.starting:
                if not mixture.threads:
                    for flow in mixture.flows:
                        flow.reset_state()
                    mixture.start(mixture.flows)
        except BaseException:
            self.close()
            raise
        return mixture

    def _pass(self, mixture: "_Mixture", length: Optional[int]) -> Iterator[Any]:
        for _ in range(sys.maxsize if length is None else length):
            try:
                dp = mixture.get()
            except BaseException:
                if mixture.error is not None and mixture is self._mixture.current():
                    self.close()
                raise
            mixture.room.put(None)
            yield dp

    def reset_state(self) -> None:
        """Makes and resets the flows, and starts the threads; ends those there were before."""
        if getattr(self._mixture.current(), "threads", None):
            self.close()
        self._start_threads()

    def start_processes(self) -> None:
        for flow in self._mixture.get(self).flows:
            flow.start_processes()

    def close(self) -> None:
        mixture = self._mixture.take()
        if mixture is not None:
            mixture.owner = None  # it refers to `mixture`
            with closing(mixture):
                mixture.stop()
                for flow in mixture.flows:
                    flow.close()

    @property
    def seeded(self) -> bool:
        return self.num_thread == 1 and self._mixture.get(self).flows[0].seeded


ThreadedMapData = MultiThreadMapData
MultiThreadPrefetchData = MultiThreadRunner


class _Threads:
    """Daemon threads, and a queue of at most `size` results, in datapoints.

    A thread takes one from `room` before it makes a result, so a result never waits to get in.
    `stop` may run in garbage collection, within any call, where `queue.Queue` would deadlock.
    """

    closed = False
    error: Optional[BaseException] = None

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.threads: List[threading.Thread] = []
        self.queue: SimpleQueue[Any] = SimpleQueue()
        self.room: SimpleQueue[None] = SimpleQueue()
        for _ in range(size):
            self.room.put(None)

    def start(self, sources: Iterable[Any]) -> None:
        for i, source in enumerate(sources):
            thread = threading.Thread(None, self._work, f"{self.name}-{i}", (source,), daemon=True)
            thread.start()
            self.threads.append(thread)

    def _work(self, source: Any) -> None:
        try:
            results = iter(source)
            self.room.get()
            while not self.closed:
                self.queue.put(next(results))
                self.room.get()
        except StopIteration:
            pass
        except BaseException as error:  # a thread must not end silently
            self.stop(error)
        finally:
            self.room.put(None)  # wakes the next thread that waits
            self.queue.put(_END)

    def get(self) -> Any:
        """Waits for a result, or raises as `check`."""
        result = self.queue.get()
        if self.closed:
            self.queue.put(result)  # wakes the next thread that waits
        self.check()
        return result

    def check(self) -> None:
        """Raises the error of `stop`, or DataFlowTerminated after it."""
        if self.error is not None:
            raise self.error
        if self.closed:
            raise DataFlowTerminated(
                f"{self.name} was closed or reset during this pass. If two inputs read it, make "
                "a flow for each of them; otherwise begin another pass."
            )

    def stop(self, error: Optional[BaseException] = None) -> None:
        """Ends all waits, now and later; waits for nothing. The error of the first call counts."""
        if not self.closed:
            self.error = error
        self.closed = True
        self.room.put(None)
        self.queue.put(None)

    def close(self, _: Any = None) -> bool:
        """Stops, waits for the threads, but not forever, and returns whether they have ended."""
        self.stop()
        if threading.current_thread() in self.threads or sys.is_finalizing():
            return False  # called by garbage collection, or daemons no longer run
        deadline = time.monotonic() + _GRACE_SECONDS
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        alive = [thread for thread in self.threads if thread.is_alive()]
        for thread in alive:
            logger.warning(
                f"{thread.name} did not stop within {_GRACE_SECONDS:g} seconds and is left behind."
            )
        return not alive


class _MapThreads(_Threads):
    """An open pass over `flow.ds`: each thread takes a datapoint, calls the function, and puts."""

    def __init__(self, flow: MultiThreadMapData) -> None:
        super().__init__(type(flow).__name__, flow.buffer_size)
        self._flow, self.source, self._over = flow, ReadAhead(flow), False

    def results(self) -> Iterator[Any]:
        """Starts the threads and yields numbers and results, as they are ready; makes no room."""
        while not self._over:
            sources = [iter(self._result, _END) for _ in range(self._flow.num_thread)]
            self.start(sources)
            for _ in sources:
                yield from iter(self.get, _END)
            # They end, too, when another pass begins, and go on reading beside it if they have to.
            self._flow._astray = self._flow._astray or not self._over

    def _result(self) -> Any:
        flow, number, dp, path = self._flow, 0, _END, None
        try:
            with flow._lock.get():
                # Another pass that was begun is not to be disturbed before it must.
                is_left = flow._place is not self.source.place and not flow._astray
                if self._over or self.closed or is_left:
                    return _END
                number = self.source.read
                dp = next(self.source, _END)
                if dp is _END:
                    self._over = True
                    return _END
                path = getattr(flow.ds, "last_file", None)
            return number, [apply_function(flow.map_func, dp), None]
        except BaseException as error:
            self._over = True  # the other threads finish what they have
            if dp is not _END and isinstance(error, Exception):
                note_datapoint(error, self.name, number, dp, path)
            if not flow.strict:
                raise
            return number, [None, error]


class _Mixture(_Threads):
    """The flows and their threads, which end on `close`, an error, or with their owner."""

    def __init__(self, owner: Any) -> None:
        super().__init__(type(owner).__name__, owner.num_prefetch)
        self.flows = [RepeatedData(owner.get_df(), -1) for _ in range(owner.num_thread)]
        if len({id(flow.ds) for flow in self.flows}) < len(self.flows):
            raise ValueError(f"{self.name} got the same flow twice from get_df(): make a new one.")
        self.starting = threading.Lock()
        self.owner: Any = weakref.ref(owner, self.close)
