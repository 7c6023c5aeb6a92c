"""Flows that work in threads of this process: a function in several threads, and several flows.

Threads share memory, so nothing is copied or sent, but Python runs only one of them at a time. They
help where the work releases the interpreter: files, sockets, numpy, OpenCV.
"""

import threading
import weakref
from contextlib import closing, contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count
from tensorpack.utils.workers.processes import usable_cores

from ._combined import ReadAhead, ReadAheadFlow
from ._flow import ProcessLocal, in_order
from ._threads.runner import MultiThreadPrefetchData, MultiThreadRunner  # noqa: F401
from ._threads.workers import BUFFER_BYTES, Buffer, ThreadPool, nbytes_of
from .base import DataFlow, StateNotKept
from .map import apply_function, checked_function, note_datapoint, warn_of_nothing

_POLL_SECONDS = 0.1


class MultiThreadMapData(ReadAheadFlow):
    """Applies a function to every datapoint in several threads; None drops the datapoint.

    A pass has the datapoints of a pass of `ds`, less those that are dropped, and then ends; in
    earlier releases it was endless unless strict. `len` is that of the wrapped flow, dropped
    datapoints included.

    Datapoints come in the order in which the function completes them. With `strict=True` they come
    in that of `ds`, and the result is that of `MapData` whatever the threads do, provided that
    calls of the function do not change what other calls see, and share no random stream.

    Every pass has its own threads: they start with its first datapoint, and are joined when it
    ends, raises, is closed or is abandoned. They read ahead in `ds`, one thread at a time. Of a
    strict pass that is left early this does not show: before the next one begins, `ds` is put back
    to behind what was yielded. If it keeps no state, the flow is not `seeded` from then on.

    An error of the function or of `ds` is raised by the pass with the traceback of the thread, as
    soon as it is known, or if strict in the place of the datapoint. A function that never returns
    cannot be ended: its thread is left behind after two seconds, with a warning. If strict, it
    keeps a state: that of `ds` after the datapoint that was yielded last.
    """

    # The state of `ds` after what was yielded last, or why there is none.
    _STATE = {"ds": None}

    @accepts_old_keywords(nr_thread="num_thread")
    def __init__(
        self,
        ds: DataFlow,
        num_thread: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        buffer_size: int = 200,
        strict: bool = False,
        *,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num_thread: the number of threads; None for the number of cores that may be used.
          map_func: takes a datapoint and returns a datapoint, or None to drop it. It may change the
            list or dict it gets; the components in it are not copied.
          buffer_size: how many datapoints may be taken from `ds` and not yet be yielded.
          buffer_bytes: no more are taken while finished ones of as many bytes wait. Arrays, texts
            and the like are measured; datapoints that the threads are working on are not counted.
          strict: whether to keep the order of `ds`.
        """
        super().__init__(ds)
        num_thread = usable_cores() if num_thread is None else num_thread
        self.num_thread = as_count(self, "num_thread", num_thread)
        self.map_func = checked_function(self, map_func)
        self.buffer_size = as_count(self, "buffer_size", buffer_size)
        self.buffer_bytes = as_count(self, "buffer_bytes", buffer_bytes)
        self.strict = strict
        self._passes = ProcessLocal(_Passes)  # threads do not survive a fork

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass; its iterator raises DataFlowTerminated if the flow is closed or reset."""
        this = _MapPass(self, self._passes.get())
        self._position = (this.source.place.state,)
        return self._pass(this)

    def _pass(self, this: "_MapPass") -> Iterator[Any]:
        kept = False
        with closing(this):
            for result in this.results():
                if result.value is not None:
                    kept = True
                    self._position = (this.source.place.state,)
                    yield result.value
            this.source.finish()
        if not kept and this.source.read > 1:
            warn_of_nothing(self)
        self._position = (this.source.place.state,)

    def reset_state(self) -> None:
        """Prepares the wrapped flow. Passes that are under way are over."""
        passes = self._passes.get()
        for each in passes.stop_all():
            passes.join(each)
        super().reset_state()

    def close(self) -> None:
        passes = self._passes.get()
        stopped = passes.stop_all()
        try:
            super().close()  # before the threads are joined: one may wait in that flow
        finally:
            for each in stopped:
                passes.join(each)

    def _load_ds(self, state: Dict[str, Any]) -> None:
        with self._passes.get().use():
            super()._load_ds(state)

    @property
    def seeded(self) -> bool:
        """Whether the wrapped flow is, and the order does not depend on the speed of threads."""
        return super().seeded and (self.strict or self.num_thread == 1)

    def _check_keeps_state(self) -> None:
        if not self.strict:
            name = type(self).__name__
            raise StateNotKept(
                f"{name} keeps no state in the order of completion, because the datapoints that "
                "were yielded are not the first ones that were read. With strict=True it keeps one."
            )


ThreadedMapData = MultiThreadMapData


class _Result(NamedTuple):
    number: int  # of the datapoint among those of the pass; -1 comes after all others of a thread
    value: Any = None  # the datapoint to yield, or None to drop it
    error: Optional[BaseException] = None  # raised in place of the value
    file: Optional[str] = None  # that it was read from


_END = _Result(-1)


class _Passes:
    """The open passes of a flow; lets the threads of one at a time use the wrapped flow."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[_MapPass] = weakref.WeakSet()
        self._open_lock = threading.Lock()
        self._lock = threading.Lock()
        self._user = 0  # id of the pass whose thread had the lock last

    def add(self, each: "_MapPass") -> None:
        with self._open_lock:
            self._open.add(each)

    def stop_all(self) -> "List[_MapPass]":
        """Tells all passes to stop; returns those to `join`."""
        with self._open_lock:
            passes = list(self._open)
        for each in passes:
            each.stop()
        return passes

    def join(self, each: "_MapPass") -> None:
        """Waits for the threads of a pass that was told to stop, and closes it."""
        if not each.join() and self._user == id(each):
            self._lock = threading.Lock()  # a thread was left behind that has the other one

    @contextmanager
    def use(self, user: "Optional[_MapPass]" = None) -> Iterator[bool]:
        """Waits until no other thread uses the wrapped flow, and keeps others out in the block.

        Gives False, and keeps none out, if the pass `user` was stopped meanwhile.
        """
        lock = self._lock
        while not lock.acquire(timeout=_POLL_SECONDS):
            if user is not None and user.stopped:
                yield False
                return
            lock = self._lock
        self._user = id(user)
        try:
            yield True
        finally:
            lock.release()


class _MapPass:
    """The threads, the buffer and the open pass over `flow.ds`.

    Each thread reserves room in the buffer, takes a datapoint from the flow while it holds the lock
    of the flow, and then applies the function.
    """

    def __init__(self, flow: Any, passes: _Passes) -> None:
        self._name, self._passes, self._flow = type(flow).__name__, passes, flow
        self._buffer = Buffer(self._name, flow.buffer_size, flow.buffer_bytes)
        self._pool = ThreadPool(self._name)
        self._over = False  # written only with the lock of the flow
        with passes.use():
            self.source = ReadAhead(flow)
        passes.add(self)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called or a thread has failed."""
        return self._buffer.closed

    def results(self) -> Iterator[_Result]:
        """Starts the threads and yields results; those in order have what was dropped, too.

        Raises an error with the traceback of its thread; DataFlowTerminated after `stop`.
        """
        self._buffer.check()
        in_turn = in_order if self._flow.strict else iter
        for _, (result, nbytes) in in_turn(self._ready()):
            self._buffer.check()
            self._buffer.release(nbytes)
            self.source.give()
            if result.error is not None:
                try:
                    raise result.error
                finally:
                    del result  # the error refers to this frame, and would be kept alive by it
            yield result

    def close(self) -> None:
        """Stops the threads, waits for them, and leaves the pass."""
        self.stop()
        self._passes.join(self)

    def stop(self) -> None:
        """Tells the threads and the consumer to stop; waits for none. Any thread may call it."""
        self._buffer.close()

    def join(self) -> bool:
        """Waits for the threads after `stop`, leaves the pass, and returns whether they ended."""
        if not self._pool.join():
            return False
        self.source.close()
        return True

    def _ready(self) -> Iterator[Tuple[int, Any]]:
        """Yields results by number as they become ready, with their bytes, still to be released."""
        while not self._over:
            working = self._flow.num_thread
            self._pool.start(self._work, working)
            while working:
                item = self._buffer.get()
                if item[0] is _END:
                    working -= 1
                else:
                    yield item[0].number, item
            # They end, too, when another pass begins, and go on reading beside it if they have to.
            self._flow._astray = self._flow._astray or not self._over

    def _work(self, number: int) -> None:
        try:
            while self._buffer.reserve() and self._step():
                pass
        except BaseException as error:  # a thread must not end silently
            self._buffer.fail(error)
        finally:
            self._buffer.put(_END, 0)

    def _step(self) -> bool:
        """Makes one result; returns False if the pass over the flow has ended."""
        taken = self._take()
        if taken is None:
            self._buffer.release()  # lets the next thread see the end
        else:
            self._put(self._map(taken) if taken.error is None else taken)
        return taken is not None

    def _take(self) -> Optional[_Result]:
        """Returns the next datapoint as the value of a result; None if there is none."""
        with self._passes.use(self) as is_free:
            source = self.source
            if not is_free or self._over or self.stopped or source.is_left:
                return None
            try:
                datapoint = next(source, _END)
            except BaseException as error:
                self._over = True
                return _Result(source.read - 1, error=error)
            if datapoint is _END:
                self._over = True
                return None
            file = getattr(self._flow.ds, "last_file", None)
            return _Result(source.read - 1, datapoint, file=file)

    def _map(self, taken: _Result) -> _Result:
        try:
            return taken._replace(value=apply_function(self._flow.map_func, taken.value))
        except BaseException as error:
            self._over = True  # the other threads finish what they have
            if isinstance(error, Exception):
                note_datapoint(error, self._name, taken.number, taken.value, taken.file)
            return taken._replace(value=None, error=error)

    def _put(self, result: _Result) -> None:
        if self._flow.strict or result.value is not None:
            self._buffer.put(result, nbytes_of(result.value))
        elif result.error is not None:
            self._buffer.fail(result.error)
        else:
            self._buffer.release()
