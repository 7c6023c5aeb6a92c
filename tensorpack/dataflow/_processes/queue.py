"""A `multiprocessing.Queue` that one worker process fills with the datapoints of a flow.

Datapoints travel as frames of `tensorpack.utils.serialize`. Consumers learn how the worker ended,
so they do not wait for a queue that nothing fills any more.
"""

import multiprocessing
import os
import queue
import time
from multiprocessing.connection import Connection
from typing import Any, Dict, Optional, Tuple

from tensorpack.utils import DIE
from tensorpack.utils.serialize import dumps, load_frame
from tensorpack.utils.worker import Worker, make_worker, state_of
from tensorpack.utils.worker_errors import failure_from_bytes, failure_to_bytes

from .._flow import call_optional
from ..base import DataFlow, DataFlowTerminated
from ..files.records import encode_datapoint
from .worker_loop import seed_process

_END, _FAILED = -1, -2  # in place of the number of a datapoint
_CHECK_SECONDS = 0.5  # between two checks of whether the worker lives
_RETRY_SECONDS = 0.001  # while another consumer reads
_STUCK_SECONDS = 30.0  # another consumer reads for so long
_JOIN_SECONDS = 2.0


class ProcessQueue:
    """The consumers' side, for this process, its threads, and processes that it starts.

    It has the methods of a `multiprocessing.Queue` for reading. `size` datapoints may wait in it;
    `name` is that of the worker that fills it.
    """

    def __init__(self, size: int, name: str) -> None:
        # Locks made by "spawn" can be sent to processes of every start method.
        spawn = multiprocessing.get_context("spawn")
        self._queue: Any = spawn.Queue(size)
        self._pid: Any = spawn.RawValue("q", 0)  # of the worker, as soon as it runs
        self._broken: Any = spawn.RawValue("b", 0)
        self._name = name
        self._maker = os.getpid()
        self._failure: Optional[Exception] = None
        self._filler: Optional[Worker] = None
        self._writer: Optional[Connection] = self._queue._writer  # type: ignore[attr-defined]

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Returns the number of a datapoint and the datapoint; `(DIE, None)` at the end.

        Waits at most `timeout` seconds if it is given.

        Raises:
          queue.Empty: nothing came in time.
          DataFlowTerminated: the worker has ended and everything was taken, or a consumer was
            killed or interrupted while it read a datapoint.
          Exception: what ended the worker, with its traceback as the cause; a `WorkerFailed`
            unless it is a builtin exception, or a `WorkerDied` if the worker could not report it.
        """
        if self._failure is not None:
            raise self._failure
        self._close_writer()
        timeout = 0.0 if not block else float("inf") if timeout is None else timeout
        deadline = time.monotonic() + timeout
        stuck: Optional[float] = None
        while True:
            # Waiting takes no lock, so a consumer may be killed while it waits.
            if self._queue._reader.poll(max(0.0, min(deadline - time.monotonic(), _CHECK_SECONDS))):
                item = self._read()
                if item is not None:
                    return self._opened(*item)
                stuck = stuck or time.monotonic() + _STUCK_SECONDS
                if time.monotonic() > stuck:
                    raise self._fail(self._lost_its_place())
                time.sleep(_RETRY_SECONDS)
            # In this order: what the worker wrote before its end is in the pipe by then.
            elif self._is_gone() and not self._queue._reader.poll(0):
                raise self._fail(self._end_of_worker())
            else:
                stuck = None
            if time.monotonic() >= deadline:
                raise queue.Empty

    def get_nowait(self) -> Tuple[Any, Any]:
        """Does what `get` does, without waiting."""
        return self.get(False)

    def empty(self) -> bool:
        """Whether no datapoint waits at the moment."""
        return self._queue.empty()

    def qsize(self) -> int:
        """Returns about how many datapoints wait."""
        return self._queue.qsize()

    def full(self) -> bool:
        """Whether the worker waits for room."""
        return self._queue.full()

    def close(self) -> None:
        """Closes the queue in this process. It does not end the worker; terminate that yourself."""
        self._queue._reader.close()
        self._queue._writer.close()

    def _read(self) -> Optional[Tuple[int, bytes]]:
        """Reads what is there; returns None if another consumer reads or was faster."""
        if self._broken.value:
            raise self._fail(self._lost_its_place())
        try:
            return self._queue.get(block=False)
        except queue.Empty:
            return None
        except (EOFError, OSError) as error:  # the worker ended, perhaps within a datapoint
            if self._queue._reader.closed:
                raise
            raise self._fail(self._end_of_worker()) from error
        except BaseException:  # a KeyboardInterrupt: the rest of the datapoint is still there
            self._broken.value = 1
            raise

    def _opened(self, number: int, frame: bytes) -> Tuple[Any, Any]:
        content = load_frame(frame)
        if number == _END:
            return DIE, None
        if number == _FAILED:
            error = failure_from_bytes(content, self._name, self._pid.value)
            raise self._fail(error or RuntimeError(f"{self._name} failed for an unknown reason."))
        return number, content

    def _fail(self, error: Exception) -> Exception:
        self._failure = error  # raised by each later call as well
        return error

    def _lost_its_place(self) -> DataFlowTerminated:
        return DataFlowTerminated(
            f"A consumer of {self._name} was killed or interrupted while it read a datapoint, so "
            "the begin of the next one is unknown. Make a new queue."
        )

    def _close_writer(self) -> None:
        # While this process could write, it would not see the end of the worker that does.
        filler = self._own_filler()
        if filler is None or filler.pid is not None:
            writer, self._writer = self._writer, None  # another thread may do the same
            if writer is not None:
                writer.close()

    def _own_filler(self) -> Optional[Worker]:
        """Returns the worker if this process can ask for its exit code."""
        return self._filler if os.getpid() == self._maker else None

    def _is_gone(self) -> bool:
        filler = self._own_filler()
        if filler is not None:
            return filler.exitcode is not None
        pid = self._pid.value
        if pid == 0:  # not started yet, for all that is known here
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return state_of(pid) == "dead"

    def _end_of_worker(self) -> Exception:
        filler = self._own_filler()
        if filler is not None and filler.pid is not None:
            filler.join(_JOIN_SECONDS)
            error = filler.error()
            if error is not None:
                return error
        return DataFlowTerminated(
            f"{self._name} has ended, and nothing is left in its queue. If this consumer did not "
            "get its DIE, there are more consumers than nr_consumer, or the worker was killed; its "
            "exit code is known to the process that started it."
        )

    def __getstate__(self) -> Dict[str, Any]:
        own = {"_filler": None, "_maker": None, "_failure": None, "_writer": None}
        return {**self.__dict__, **own}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state, _writer=state["_queue"]._writer)


def make_filler(
    ds: DataFlow, target: ProcessQueue, nr_consumer: int, seed: int, method: str
) -> Worker:
    """Makes the worker that fills a queue, with the end `nr_consumer` times; it is not started."""
    arguments = (target._queue, target._pid, ds, nr_consumer, seed)
    target._filler = make_worker(_fill, arguments, name=target._name, method=method)
    return target._filler


def _fill(target: Any, pid: Any, ds: DataFlow, nr_consumer: int, seed: int) -> None:
    """What the worker does."""
    pid.value = os.getpid()
    failure: Optional[Exception] = None
    last = _END, dumps(None)
    problem = f" of {type(ds).__name__} cannot be sent"
    try:
        try:
            seed_process(seed)
            ds.reset_state()
            for number, datapoint in enumerate(ds):
                _put(target, (number, encode_datapoint(datapoint, number, problem)))
        except Exception as error:
            failure, last = error, (_FAILED, dumps(failure_to_bytes(error)))
        finally:
            call_optional(ds, "close")
        for _ in range(nr_consumer):
            _put(target, last)
        target.close()
        target.join_thread()
    except BaseException:
        target.cancel_join_thread()  # consumers that have left would keep the process
        # A signal that came while put() took its lock has left that locked, for ever; the end of
        # the queue, which the end of this process would bring about, waits for it.
        if target._close is not None:
            target._close.cancel()
        raise
    if failure is not None:
        raise failure


def _put(target: Any, item: Tuple[int, bytes]) -> None:
    """Puts an item as soon as there is room.

    A signal that comes just before the wait does not interrupt it, so waits are short.
    """
    while True:
        try:
            return target.put(item, timeout=_CHECK_SECONDS)
        except queue.Full:
            continue
