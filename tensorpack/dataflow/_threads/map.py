"""A pass of a function over a flow in several threads.

Each thread reserves room in the buffer, takes a datapoint from the flow while it holds the lock of
the flow, and then applies the function.
"""

import itertools
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .._datapoint import note_datapoint
from ..base import StateNotKept
from ..map import apply_function
from .workers import Buffer, ThreadPool, nbytes_of

_POLL_SECONDS = 0.1


class _Result(NamedTuple):
    number: int  # of the datapoint in its pass; -1 comes after all others
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
    """The threads, the buffer and the open pass over the wrapped flow.

    `first_state` and `last_state` are the states of the flow before and after the pass, or None.
    With `state_of_ds`, results come in the order of the datapoints, else in that of completion.
    """

    def __init__(
        self,
        name: str,
        passes: Passes,
        ds: Any,
        func: Callable[[Any], Any],
        buffer: Buffer,
        state_of_ds: Optional[Callable[[], Any]],
    ) -> None:
        self._name = name
        self._passes = passes
        self._ds = ds
        self._func = func
        self._buffer = buffer
        self._strict = state_of_ds is not None
        self._state_of_ds = state_of_ds
        self._pool = ThreadPool(name)
        self._taken = 0  # written only with the lock of the flow, as is the next one
        self._over = False
        self._working = 0
        self._working_lock = threading.Lock()
        self.last_state: Any = None
        lock = passes.acquire(None)
        try:
            self._datapoints = iter(ds)
            self.first_state = self._state()
        finally:
            lock.release()
        passes.add(self)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called or a thread has failed."""
        return self._buffer.closed

    def start(self, num_thread: int) -> None:
        """Starts the threads. Raises DataFlowTerminated if `stop` was called before."""
        self._buffer.check()
        self._working = num_thread
        self._pool.start(self._work, num_thread)

    def results(self) -> Iterator[_Result]:
        """Yields results with values; raises an error with the traceback of its thread."""
        for result in self._in_order() if self._strict else self._as_completed():
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

    def _as_completed(self) -> Iterator[_Result]:
        while True:
            result, nbytes = self._buffer.get()
            if result is _END:
                return
            self._buffer.release(nbytes)
            yield result

    def _in_order(self) -> Iterator[_Result]:
        waiting: Dict[int, Any] = {}
        for number in itertools.count():
            while number not in waiting:
                result, nbytes = self._buffer.get()
                if result is _END:
                    return
                waiting[result.number] = result, nbytes
            self._buffer.check()
            result, nbytes = waiting.pop(number)
            self._buffer.release(nbytes)
            yield result
            del result

    def _work(self, number: int) -> None:
        try:
            while self._buffer.reserve() and self._step():
                pass
        except BaseException as error:  # a thread must not end silently
            self._buffer.fail(error)
        finally:
            with self._working_lock:
                self._working -= 1
                last = self._working == 0
            if last:
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
            file = getattr(self._ds, "last_file", None)
            return _Result(self._taken - 1, datapoint, state, file=file)
        except BaseException as error:
            self._over = True
            return _Result(self._taken, error=error)
        finally:
            lock.release()

    def _map(self, taken: _Result) -> _Result:
        try:
            return taken._replace(value=apply_function(self._func, taken.value))
        except BaseException as error:
            self._over = True  # the other threads finish what they have
            if isinstance(error, Exception):
                note_datapoint(error, self._name, taken.number, taken.value, taken.file)
            return taken._replace(value=None, error=error)

    def _put(self, result: _Result) -> None:
        if self._strict or result.value is not None:
            self._buffer.put(result, nbytes_of(result.value))
        elif result.error is not None:
            self._buffer.fail(result.error)
        else:
            self._buffer.release()

    def _state(self) -> Any:
        if self._state_of_ds is None:
            return None
        try:
            return self._state_of_ds()
        except StateNotKept:
            self._state_of_ds = None  # it would be asked after every datapoint
            return None
