"""One pass of a function over a flow in several threads.

Each thread finds room in the buffer and takes a datapoint from the flow while it has the turn, then
passes the turn on and applies the function. The last one out says that it was the last.
"""

import itertools
import threading
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

from ..map import apply_function
from .buffer import Buffer
from .pool import ThreadPool
from .size import nbytes_of
from .source import Source
from .turns import Turns

__all__ = ["MapPass", "OrderedMapPass"]

_END = object()  # behind all results


class MapPass:
    """Gives results in the order of their completion, and an error as soon as there is one."""

    def __init__(
        self, name: str, source: Source, func: Callable[[Any], Any], num_thread: int, buffer: Buffer
    ) -> None:
        """
        Args:
          name: of the flow; the threads have it too.
          source: the datapoints; closed by `close_source`.
          func: applied to each datapoint, or to a copy where that is a list or dict.
          num_thread: the number of threads.
          buffer: a new one.
        """
        self._source = source
        self._func = func
        self._num_thread = num_thread
        self._buffer = buffer
        self._pool = ThreadPool(name)
        self._turns = Turns()
        self._taken = 0  # changed only by the thread that has the turn
        self._working = num_thread
        self._working_lock = threading.Lock()

    def start(self) -> None:
        """Starts the threads."""
        self._pool.start(self._work, self._num_thread)

    def results(self) -> Iterator[Tuple[Any, Any]]:
        """Yields results that are not None, each with the state of the flow behind it, or None.

        Raises (while iterating):
          DataFlowTerminated: somebody else called `stop`.
          BaseException: what the function or the flow raised, with the traceback of the thread.
        """
        while True:
            result, nbytes = self._buffer.get()
            if result is _END:
                return
            self._buffer.release(nbytes)
            yield result, None

    def stop(self) -> None:
        """Tells the threads to end, and wakes those that wait, `results` as well; waits for none.

        Takes no lock, and may be called by anybody.
        """
        self._buffer.close()
        self._turns.end()

    def join(self) -> bool:
        """Waits for the threads, after `stop`; see `ThreadPool.join`."""
        return self._pool.join()

    def close_source(self) -> None:
        """Leaves the pass over the flow, when all threads have ended."""
        self._source.close()

    def _work(self, number: int) -> None:
        try:
            while self._turns.wait():
                self._step()
        except BaseException as error:  # nothing ends a thread without a word
            self._buffer.fail(error)
        finally:
            with self._working_lock:
                self._working -= 1
                last = self._working == 0
            if last:
                self._buffer.put(_END, 0)

    def _step(self) -> None:
        # In a function of its own, so that a thread that waits does not keep a datapoint.
        try:
            taken = self._take()
        finally:
            self._turns.pass_on()
        if taken is not None:
            self._map(*taken)

    def _take(self) -> Optional[Tuple[int, Any, Any]]:
        """Returns the number of a datapoint, the datapoint and the state; None if it is over."""
        if not self._buffer.reserve():
            self._turns.end()
            return None
        try:
            read = self._source.read(self._is_stopped)
        except BaseException as error:
            self._fail(self._taken, error)
            return None
        if read is None or self._buffer.closed:
            self._turns.end()
            return None
        self._taken += 1
        return (self._taken - 1, *read)

    def _is_stopped(self) -> bool:
        return self._buffer.closed

    def _map(self, number: int, datapoint: Any, state: Any) -> None:
        try:
            result = apply_function(self._func, datapoint)
            nbytes = nbytes_of(result)
        except BaseException as error:
            self._fail(number, error)
        else:
            self._deliver(number, result, nbytes, state)

    def _deliver(self, number: int, result: Any, nbytes: int, state: Any) -> None:
        if result is None:
            self._buffer.release(0)
        else:
            self._buffer.put(result, nbytes)

    def _fail(self, number: int, error: BaseException) -> None:
        self._buffer.fail(error)
        self._turns.end()


class _Result(NamedTuple):
    number: int
    value: Any
    state: Any
    error: Optional[BaseException]


class OrderedMapPass(MapPass):
    """Gives results in the order of the datapoints, and an error in the place of its datapoint."""

    def results(self) -> Iterator[Tuple[Any, Any]]:
        waiting: Dict[int, Tuple[_Result, int]] = {}
        for number in itertools.count():
            while number not in waiting:
                result, nbytes = self._buffer.get()
                if result is _END:
                    return
                waiting[result.number] = result, nbytes
            self._buffer.check()
            result, nbytes = waiting.pop(number)
            self._buffer.release(nbytes)
            if result.error is not None:
                try:
                    raise result.error
                finally:
                    del result  # the error knows this frame, and would be kept alive by it
            if result.value is not None:
                yield result.value, result.state

    def _deliver(self, number: int, result: Any, nbytes: int, state: Any) -> None:
        self._buffer.put(_Result(number, result, state, None), nbytes)

    def _fail(self, number: int, error: BaseException) -> None:
        # What was taken before is still wanted, so the others finish what they have.
        self._turns.end()
        self._buffer.put(_Result(number, None, None, error), 0)
