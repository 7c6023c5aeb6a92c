"""A queue that a process of its own fills with the datapoints of a flow, for several consumers.

The process says itself when it fails, and its pipe says when it is gone, so that nobody waits for a
queue that nobody fills. In the pipe are, by turns, a number of eight bytes and a frame of
`tensorpack.utils.serialize`.
"""

import multiprocessing
import os
import queue
import struct
import threading
import time
from multiprocessing import context
from multiprocessing.connection import Connection
from typing import Any, Dict, NamedTuple, Optional, Tuple

from tensorpack.utils import DIE
from tensorpack.utils.serialize import dumps, loads
from tensorpack.utils.worker import Worker, make_worker, state_of
from tensorpack.utils.worker_errors import failure_from_bytes, failure_to_bytes

from ..base import DataFlow, DataFlowTerminated
from .turn import Turn
from .worker_seeds import seed_process

__all__ = ["ProcessQueue", "make_filler"]

_END, _FAILED = -1, -2  # in place of the number of a datapoint
_NUMBER = struct.Struct("<q")
_POLL_SECONDS = 0.5  # between two looks at whether the process is still there
_REAP_SECONDS = 2.0


class _Item(NamedTuple):
    """What is in the queue: the number of a datapoint, and its frame."""

    number: int
    frame: bytes


class ProcessQueue:
    """What consumers read from: this process, its threads, and processes that it starts.

    It has the methods of a `multiprocessing.Queue` for reading.
    """

    def __init__(self, size: int, name: str) -> None:
        """
        Args:
          size: how many datapoints may wait in it.
          name: of the process that fills it, for messages.
        """
        # By "spawn", for what is made so can go to processes of all start methods.
        maker = multiprocessing.get_context("spawn")
        self._size = size
        self._name = name
        self._reader, writer = maker.Pipe(duplex=False)
        self._turn = Turn()
        self._room = maker.BoundedSemaphore(size)
        self._pid: Any = maker.RawValue("q", 0)  # of the process, as soon as it runs
        self._failure: Optional[Exception] = None
        self._maker = os.getpid()
        # These two only where it was made, and in forked copies.
        self._writer: Optional[Connection] = writer
        self._filler: Optional[Worker] = None

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Returns the number of a datapoint and the datapoint; `(DIE, None)` at the end.

        Args:
          block: whether to wait for it.
          timeout: how many seconds to wait; None for as long as it takes.

        Raises:
          queue.Empty: there is nothing yet.
          DataFlowTerminated: the process has ended, and everything was taken.
          Exception: what ended the process, with its traceback as the cause; a `WorkerFailed`
            unless it is a builtin exception, or a `WorkerDied` if it could not say why.
        """
        if self._failure is not None:
            raise self._failure
        self._let_go_of_writer()
        if not block:
            timeout = 0.0
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            item = self._receive(_POLL_SECONDS if left is None else min(left, _POLL_SECONDS))
            if item is not None:
                return self._opened(item)
            # In this order: what it wrote before its end is in the pipe by then.
            if self._is_gone() and not self._reader.poll(0):
                raise self._why_gone()
            if deadline is not None and time.monotonic() >= deadline:
                raise queue.Empty

    def get_nowait(self) -> Tuple[Any, Any]:
        """Does what `get` does, without waiting."""
        return self.get(False)

    def empty(self) -> bool:
        """Whether there is nothing to take right now."""
        return not self._reader.poll(0)

    def qsize(self) -> int:
        """Returns about how many datapoints wait, in the pipe or before it."""
        return self._size - self._room.get_value()  # type: ignore[attr-defined]

    def full(self) -> bool:
        """Whether the process waits for somebody to take a datapoint."""
        return self.qsize() == self._size

    def close(self) -> None:
        """Lets go of the pipe in this process; nothing can be taken here any more."""
        self._reader.close()
        self._close_writer()
        self._turn.close()

    def _receive(self, seconds: float) -> Optional[_Item]:
        """Returns what comes next, or None if that takes more than some seconds."""
        deadline = time.monotonic() + seconds
        # Whoever waits has nothing that others need: it may be killed meanwhile.
        while self._reader.poll(max(0.0, deadline - time.monotonic())):
            with self._turn.taken(deadline) as is_ours:
                if not is_ours:
                    return None  # another consumer reads
                if self._reader.poll(0):  # else another one was faster
                    return self._read()
        return None

    def _read(self) -> _Item:
        """Reads what is there; called by who has the turn."""
        if self._turn.broken:
            raise DataFlowTerminated(
                f"A consumer of {self._name} was killed or interrupted while it read a datapoint, "
                "so nobody can tell where the next one begins. Make a new queue."
            )
        self._turn.begins()
        try:
            (number,) = _NUMBER.unpack(self._reader.recv_bytes())
            item = _Item(number, self._reader.recv_bytes())
        except (EOFError, OSError) as error:  # nobody can write any more
            self._turn.ends()
            if self._reader.closed:
                raise
            raise self._why_gone() from error
        self._room.release()
        self._turn.ends()
        return item

    def _opened(self, item: _Item) -> Tuple[Any, Any]:
        content = loads(item.frame)
        if item.number == _END:
            return DIE, None
        if item.number == _FAILED:
            error = failure_from_bytes(content, self._name, self._pid.value)
            self._failure = error or RuntimeError(f"{self._name} failed, and nobody knows why.")
            raise self._failure
        return item.number, content

    def _let_go_of_writer(self) -> None:
        # As long as this process could write, it would not see the end of the one that does.
        filler = self._own_filler()
        if filler is None or filler.pid is not None:
            self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None  # another thread may do the same
        if writer is not None:
            writer.close()

    def _own_filler(self) -> Optional[Worker]:
        """Returns the process, if this one can ask for its exit code."""
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

    def _why_gone(self) -> Exception:
        # Kept, for nothing comes any more, also while another consumer is reading the end.
        self._failure = self._end_of_filler()
        return self._failure

    def _end_of_filler(self) -> Exception:
        filler = self._own_filler()
        if filler is not None and filler.pid is not None:
            filler.join(_REAP_SECONDS)
            error = filler.error()
            if error is not None:
                return error
        return DataFlowTerminated(
            f"{self._name} has ended, and nothing is left in its queue. If this consumer has not "
            "got its DIE, there are more consumers than nr_consumer, or the process was killed: "
            "its exit code is known to the process that started it."
        )

    def __getstate__(self) -> Dict[str, Any]:
        context.assert_spawning(self)
        own = {"_writer": None, "_filler": None, "_maker": None, "_failure": None}
        return {**self.__dict__, **own}


def make_filler(
    ds: DataFlow, target: ProcessQueue, nr_consumer: int, seed: int, method: str
) -> Worker:
    """Makes the process that fills a queue; it is not started.

    Args:
      ds: the flow.
      target: the queue, made in this process.
      nr_consumer: how often the end is put into it.
      seed: of all that the flow draws.
      method: how the process is started.
    """
    ends = target._reader, target._writer, target._room, target._pid
    arguments = (ends, ds, nr_consumer, seed)
    target._filler = make_worker(_fill, arguments, name=target._name, method=method)
    return target._filler


def _fill(ends: Tuple[Any, ...], ds: DataFlow, nr_consumer: int, seed: int) -> None:
    """What the process does."""
    reader, writer, room, pid = ends
    pid.value = os.getpid()
    reader.close()  # to notice that nobody reads any more
    sending = _Sending(writer, room)
    failure: Optional[Exception] = None
    last = _Item(_END, dumps(None))
    try:
        seed_process(seed)
        ds.reset_state()
        for number, datapoint in enumerate(ds):
            sending.put(_Item(number, _frame(ds, number, datapoint)))
    except Exception as error:
        failure, last = error, _Item(_FAILED, dumps(failure_to_bytes(error)))
    finally:
        getattr(ds, "close", lambda: None)()
    for _ in range(nr_consumer):
        sending.put(last)
    sending.finish()
    if failure is not None:
        raise failure


def _frame(ds: DataFlow, number: int, datapoint: Any) -> bytes:
    try:
        return dumps(datapoint)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Datapoint {number} of {type(ds).__name__} cannot be sent: {error}") from error


class _Sending:
    """Sends from a thread, so that the flow goes on while the pipe is full."""

    def __init__(self, writer: Connection, room: Any) -> None:
        self._writer = writer
        self._room = room
        self._waiting: Any = queue.Queue()  # as long as there is room
        self._error: Optional[OSError] = None
        # A daemon: who is told to end does not wait for consumers that have left.
        self._thread = threading.Thread(target=self._run, name="ProcessQueue", daemon=True)
        self._thread.start()

    def put(self, item: _Item) -> None:
        """Sends something as soon as there is room for it.

        Raises:
          BrokenPipeError: nobody reads any more.
        """
        while not self._room.acquire(True, _POLL_SECONDS):
            self._check()
        self._check()
        self._waiting.put(item)

    def finish(self) -> None:
        """Waits until everything is sent."""
        self._waiting.put(None)
        self._thread.join()
        self._check()

    def _run(self) -> None:
        try:
            for item in iter(self._waiting.get, None):
                self._writer.send_bytes(_NUMBER.pack(item.number))
                self._writer.send_bytes(item.frame)
        except OSError as error:
            self._error = error

    def _check(self) -> None:
        if self._error is not None:
            raise BrokenPipeError("Nobody reads the queue of this process any more.")
