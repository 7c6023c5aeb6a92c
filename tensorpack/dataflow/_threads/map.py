"""A pass of a function over a flow in several threads.

Each thread reserves room in the buffer, takes a datapoint from the flow while it holds the lock of
the flow, and then applies the function.
"""

import threading
import weakref
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from .._flow import in_order
from ..base import StateNotKept
from ..map import apply_function, note_datapoint
from .workers import Buffer, ThreadPool, nbytes_of

_POLL_SECONDS = 0.1


class _Result(NamedTuple):
    number: int  # of the datapoint in its pass; -1 comes after all others of a thread
    value: Any = None  # the datapoint to yield, or None to drop it
    state: Any = None  # of the flow after the datapoint it was made from
    error: Optional[BaseException] = None  # raised in place of the value
    file: Optional[str] = None  # that it was read from


_END = _Result(-1)


class Passes:
    """The open passes of a flow; lets the threads of one at a time use the wrapped flow."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[MapPass] = weakref.WeakSet()
        self._open_lock = threading.Lock()
        self._lock = threading.Lock()
        self._user = 0  # id of the pass whose thread had the lock last

    def add(self, each: "MapPass") -> None:
        with self._open_lock:
            self._open.add(each)

    def stop_all(self) -> "List[MapPass]":
        """Tells all passes to stop; returns those to `join`."""
        with self._open_lock:
            passes = list(self._open)
        for each in passes:
            each.stop()
        return passes

    def join(self, each: "MapPass") -> None:
        """Waits for the threads of a pass that was told to stop, and closes it."""
        if not each.join() and self._user == id(each):
            self._lock = threading.Lock()  # a thread was left behind that has the other one

    def acquire(self, user: "Optional[MapPass]") -> Any:
        """Waits until no other thread uses the wrapped flow.

        Returns the lock to release, or None if the pass `user` was stopped meanwhile.
        """
        while True:
            lock = self._lock
            if lock.acquire(timeout=_POLL_SECONDS):
                self._user = id(user)
                return lock
            if user is not None and user.stopped:
                return None


class MapPass:
    """The threads, the buffer and the open pass over the flow `flow.ds` of a `MultiThreadMapData`.

    `first_state` and `last_state` are the states of that flow before and after the pass, or None.
    """

    def __init__(self, flow: Any, passes: Passes) -> None:
        self._name, self._passes, self._flow = type(flow).__name__, passes, flow
        self._buffer = Buffer(self._name, flow.buffer_size, flow.buffer_bytes)
        self._pool = ThreadPool(self._name)
        self._keeps_state = flow.strict
        self._taken = 0  # written only with the lock of the flow, as is the next one
        self._over = False
        self.last_state: Any = None
        lock = passes.acquire(None)
        try:
            self._datapoints = iter(flow.ds)
            self.first_state = self._state()
        finally:
            lock.release()
        passes.add(self)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called or a thread has failed."""
        return self._buffer.closed

    def results(self) -> Iterator[_Result]:
        """Starts the threads and yields results with values.

        Raises an error with the traceback of its thread; DataFlowTerminated after `stop`.
        """
        self._buffer.check()
        self._pool.start(self._work, self._flow.num_thread)
        in_turn = in_order if self._flow.strict else iter
        for _, (result, nbytes) in in_turn(self._ready()):
            if self._buffer.closed:
                self._buffer.check()
            self._buffer.release(nbytes)
            if result.error is not None:
                try:
                    raise result.error
                finally:
                    del result  # the error refers to this frame, and would be kept alive by it
            if result.value is not None:
                yield result

    def stop(self) -> None:
        """Tells the threads and the consumer to stop; waits for none. Any thread may call it."""
        self._buffer.close()

    def join(self) -> bool:
        """Waits for the threads after `stop`, leaves the pass, and returns whether they ended."""
        if not self._pool.join():
            return False
        datapoints, self._datapoints = self._datapoints, iter(())
        close = getattr(datapoints, "close", None)
        if close is not None:
            close()
        return True

    def _ready(self) -> Iterator[Tuple[int, Any]]:
        """Yields results by number as they become ready, with their bytes, still to be released."""
        working = self._flow.num_thread
        while working:
            item = self._buffer.get()
            if item[0] is _END:
                working -= 1
            else:
                yield item[0].number, item

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
        lock = self._passes.acquire(self)
        if lock is None:
            return None
        try:
            if self._over or self.stopped:
                return None
            datapoint = next(self._datapoints, _END)
            # No other pass may come between a datapoint and the state: the flow has only one.
            state = self._state()
            if datapoint is _END:
                self._over, self.last_state = True, state
                return None
            self._taken += 1
            file = getattr(self._flow.ds, "last_file", None)
            return _Result(self._taken - 1, datapoint, state, file=file)
        except BaseException as error:
            self._over = True
            return _Result(self._taken, error=error)
        finally:
            lock.release()

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

    def _state(self) -> Any:
        try:
            return self._flow._state_of_ds() if self._keeps_state else None
        except StateNotKept:
            self._keeps_state = False  # it would be asked after every datapoint
            return None
