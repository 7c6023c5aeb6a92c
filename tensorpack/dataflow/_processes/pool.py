"""Worker processes that do the same work, and how their owner feeds them and waits for them."""

import operator
import os
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Iterable, List, Optional, Sequence, Tuple

from tensorpack.utils import logger
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker import Worker, described

from ..base import DataFlowTerminated
from .channel import TAGS, Limits, Receiver, Sender, make_channels
from .pickled import Packed
from .shared_memory import explain_shortage, poll_of
from .start_method import start

SEEDS = Limits(slots=0, items=1000, nbytes=0)  # of inputs that are numbers

_WARN_SECONDS, _REAP_SECONDS = 60.0, 2.0


class _PoolWorker:
    """A process with the channels for what it sends, and for what is sent to it."""

    def __init__(self, process: Worker, results: Receiver, inputs: Sender) -> None:
        self.process, self.results, self.inputs = process, results, inputs
        self.in_flight = 0  # inputs without a result yet


def _exclusive(method: Callable[..., Any]) -> Callable[..., Any]:
    """Has a method use the channels alone, while the pool is open, and close it if it fails."""

    def call(self: "WorkerPool", *args: Any, **options: Any) -> Any:
        try:
            with self._using:
                if self.closed or os.getpid() != self._owner:
                    raise self._was_closed()
                return method(self, *args, **options)
        except BaseException as error:
            if not self.close() and isinstance(error, Exception):  # it was closed meanwhile
                raise self._was_closed() from error
            raise

    return call


class WorkerPool:
    """Worker processes that do the same work; used by one thread, closed by any.

    Every error closes the pool, a KeyboardInterrupt as well, because something in flight may have
    been lost. Calls raise what `ProcessFlow.__iter__` says.

    Each worker calls `target` with its end of the inputs, that of the results, and its `args`.
    `sent` are the name in messages of the object in them that comes from the user, and that object.
    `limits` are of the results of each worker, `inputs` of its inputs.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Tuple[Any, ...]],
        sent: Tuple[str, Any],
        limits: Limits,
        method: str,
        name: str,
        inputs: Limits = SEEDS,
    ) -> None:
        self._owner, self._name = os.getpid(), name
        self._workers: List[_PoolWorker] = []
        # Reentrant: a signal handler may close a flow while a call is under way.
        self._closing = threading.RLock()
        self._using = threading.RLock()  # held while the channels are used, so that none is closed
        self.in_use = self.has_begun = False
        self.closed = False  # by `close` or because of an error
        self._tag = 0  # of the first object of the pass
        self._ready: Deque[_PoolWorker] = deque()  # those of which something was received
        try:
            with explain_shortage(f"{name} with {len(args)} processes"):
                for index, worker_args in enumerate(args):
                    (sender, results), (feeder, receiver) = make_channels(limits, inputs)
                    process = Worker(
                        target,
                        (receiver, sender, *worker_args),
                        name=f"{name} {index}",
                        method=method,
                        endless=True,
                    )
                    self._workers.append(_PoolWorker(process, results.attach(), feeder.attach()))
                    try:
                        start(process, method, *sent)
                    finally:
                        sender.close()
                        receiver.close()
                    results.sender = f"Worker {process.name!r} (pid {process.pid})"
        except BaseException:
            self.close()
            raise
        self._by_fd = {worker.results.reads.fd: worker for worker in self._workers}
        self._by_fd.update({worker.process.sentinel: worker for worker in self._workers})
        room = [worker.inputs.reads.fd for worker in self._workers]
        self._poll, self._poll_for_room = poll_of(*self._by_fd), poll_of(*self._by_fd, *room)

    @_exclusive
    def begin(self, inputs: Sequence[Any] = ()) -> None:
        """Begins a pass, with the first input of each worker, if any.

        What workers make of earlier inputs is dropped by `exchange`, so they may be busy with it.
        """
        self._tag += TAGS
        self.has_begun = True
        for worker, obj in zip(self._workers, inputs):
            packed = Packed(obj)
            while not self._send([worker], packed, 0):
                self._wait(self._poll_for_room, True)

    @_exclusive
    def exchange(self, packed: Optional[Packed] = None, number: int = 0) -> Tuple[bool, Any]:
        """Sends an input to the worker that has the least to do among those with room for it, or
        waits for a result of this pass, or for room.

        Returns whether it was sent, and the next result if one is there: the number, below `TAGS`,
        that its input had, and the result or a `Failure`.
        """
        sent, poll = False, self._poll
        if packed is not None:
            by_load = sorted(self._workers, key=operator.attrgetter("in_flight"))
            sent, poll = self._send(by_load, packed, number), self._poll_for_room
        while self._ready or self._wait(poll, not sent):
            worker = self._ready[0]
            item = worker.results.take()
            if item is None:
                self._ready.popleft()
                continue
            worker.in_flight -= 1
            result_number = item[0] - self._tag
            if result_number >= 0:  # else it belongs to a pass that was left
                return sent, (result_number, item[1])
            item = None  # the next one may wait for its memory
        return sent, None

    def close(self) -> bool:
        """Ends the workers; calls that wait raise an error. Returns whether it was still open."""
        if os.getpid() != self._owner:
            return False
        with self._closing:
            if self.closed:
                return False
            self.closed = True
            try:
                # those that wait in `_wait` are woken by the ends of the workers
                ProcessGroup([worker.process for worker in self._workers]).close()
            finally:
                with self._using:
                    for worker in self._workers:
                        worker.results.close()
                        worker.inputs.close()
        return True

    def _send(self, workers: Iterable[_PoolWorker], packed: Packed, number: int) -> bool:
        for worker in workers:
            try:
                if worker.inputs.offer(packed, self._tag + number):
                    worker.in_flight += 1
                    return True
                continue
            except BrokenPipeError:
                pass  # its error has a cause of its own
            raise self._error(worker)
        return False

    def _wait(self, poll: Any, wait: bool) -> bool:
        """Waits for what `poll` has; returns whether results are ready.

        Raises the error of a worker that has ended, with nothing left to take.
        """
        for worker in self._workers:  # of all, not only those that have sent something
            worker.results.return_slots()
        begin, warn, fds = time.monotonic(), _WARN_SECONDS, poll.poll(0)
        while not fds and wait:
            # a process that was forked at the same moment may hold the pipes of one that is gone
            fds = poll.poll(1000) or [
                (w.process.sentinel, 0) for w in self._workers if not w.process.is_alive()
            ]
            if time.monotonic() - begin > warn:
                warn *= 2
                # of those with inputs, if these are counted
                silent = [w for w in self._workers if w.in_flight > 0] or self._workers
                logger.warning(
                    f"{self._name} has given no data for {time.monotonic() - begin:.0f} seconds. "
                    "Waiting for:\n" + "\n".join(described(worker.process) for worker in silent)
                )
        for worker in filter(None, [self._by_fd.get(fd) for fd, _ in fds]):
            is_ready = worker in self._ready
            if worker.results.receive() and not is_ready:
                self._ready.append(worker)
            elif not is_ready:
                raise self._error(worker)
        return bool(self._ready)

    def _was_closed(self) -> DataFlowTerminated:
        return DataFlowTerminated(
            f"{self._name} was closed while its data was waited for, or this pass was begun by "
            "another process: begin one in this process."
        )

    def _error(self, worker: _PoolWorker) -> Exception:
        if self.closed:
            return self._was_closed()
        worker.process.join(_REAP_SECONDS)
        return worker.process.error() or RuntimeError(f"{worker.process.name} closed its pipe.")
