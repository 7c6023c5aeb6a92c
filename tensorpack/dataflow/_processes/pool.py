"""Worker processes that do the same work, and how their owner feeds them and waits for them."""

import contextlib
import os
import threading
import time
from collections import deque
from functools import partial
from multiprocessing import Pipe
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from tensorpack.utils import logger
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker import Worker, described, make_worker
from tensorpack.utils.workers.worker_errors import failure_from_bytes

from ..base import DataFlowTerminated
from .channel import Limits, Receiver, Sender, make_channel
from .pickled import Packed, pack
from .shared_memory import ToClose, close_after_fork, explain_file_limit, poll_of
from .start_method import start
from .worker_loop import BEGUN, FAILED, WorkerLoop

ORDERS = Limits(slots=1, items=1, nbytes=1 << 20)  # of a pool whose inputs are orders

_PATIENCE_SECONDS = 0.05  # until workers are told that their owner waits
_WARN_SECONDS = 60.0
_REAP_SECONDS = 2.0
_BESIDE_SLOTS = 9  # the pipes of both channels, a Worker, and a process of multiprocessing


class _Member(NamedTuple):
    """A worker with the channels for what it sends, and for what is sent to it."""

    worker: Worker
    results: Receiver
    inputs: Sender


class Failure(NamedTuple):
    """Takes the place of a result; its consumer raises `error`."""

    error: Exception


class WorkerPool:
    """Worker processes that do the same work; used by one thread, closed by any.

    Every error but those in a `Failure` closes the pool, a KeyboardInterrupt as well, because
    something in flight may have been lost. Calls raise `DataFlowTerminated` when the pool is
    closed, and the exception of a worker that has ended, or a `WorkerDied` or `WorkerFailed`.

    Each of `count` workers calls `target` with its `WorkerLoop`, its index, and `args`. `sent` are
    the object in `args` that comes from the user, and its name in messages. `limits` are of the
    results of each worker, `inputs` of its inputs.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        args: Tuple[Any, ...],
        sent: Tuple[str, Any],
        count: int,
        limits: Limits,
        method: str,
        name: str,
        inputs: Limits = ORDERS,
    ) -> None:
        self._owner, self._name = os.getpid(), name
        self._members: List[_Member] = []
        # Reentrant: a signal handler may close a flow while a call is under way.
        self._closing = threading.RLock()
        self._using = threading.RLock()  # held while the channels are used, so that none is closed
        self.closed = False  # by `close` or because of an error
        self._woken, self._waker = Pipe(duplex=False)
        self._wake_ends = ToClose(self._woken, self._waker)
        close_after_fork(self._wake_ends)
        self._number = 0
        self._begun = set(range(count))  # workers whose objects belong to the present order
        self._in_flight = [0] * count  # inputs without a result yet
        self._failing: Set[int] = set()
        self._ended: Set[int] = set()
        self._draining: Deque[int] = deque()

        def begin(index: int, loop: WorkerLoop) -> Worker:
            own = (loop, index, *args)
            worker = make_worker(target, own, name=f"{name} {index}", method=method, endless=True)
            start(worker, method, *sent)
            return worker

        try:
            descriptors = count * descriptors_of(limits, inputs)
            with explain_file_limit(f"{name} with {count} processes", descriptors):
                for index in range(count):
                    self._members.append(_start_member(partial(begin, index), limits, inputs))
            self._set_up_polls()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._members)

    def order(self, orders: Sequence[Dict[str, Any]]) -> None:
        """Gives each worker an order; what the workers sent for older orders is dropped."""
        self._number += 1
        self._begun.clear()
        try:
            for index, order in enumerate(orders):
                packed = pack(order)
                self._drop(index)
                while not self._give(index, packed, self._number):
                    self._wait(self._polls_for_order[index], True)
                    self._drop(index)
        except BaseException:
            self.close()
            raise

    def send(self, packed: Packed) -> Optional[int]:
        """Sends an input to the worker that has the least to do among those with room for it.

        Returns the tag that its result will have; None if no worker has room.
        """
        try:
            for index in sorted(range(len(self)), key=self._in_flight.__getitem__):
                if self._give(index, packed, self._number):
                    self._in_flight[index] += 1
                    self._number += 1
                    return self._number - 1
            return None
        except BaseException:
            self.close()
            raise

    def take(self) -> Tuple[int, Any]:
        """Waits for the next object of any worker, or its `Failure`; returns the tag and that."""
        return self._next(self._poll, True)

    def take_if(self, or_room: bool = False) -> Optional[Tuple[int, Any]]:
        """Returns what `take` does if it is there already, or else None.

        With `or_room`, waits until something comes, or until there may be room for `send`.
        """
        return self._next(self._poll_for_room if or_room else self._poll, or_room)

    def close(self) -> bool:
        """Ends the workers; calls that wait raise an error. Returns whether it was still open."""
        if os.getpid() != self._owner:
            return False
        with self._closing:
            if self.closed:
                return False
            self.closed = True
            self._waker.send_bytes(b".")
            try:
                ProcessGroup([member.worker for member in self._members]).close()
            finally:
                with self._using:
                    self._wake_ends.close()
                    for member in self._members:
                        member.results.close()
                        member.inputs.close()
        return True

    def _set_up_polls(self) -> None:
        members = self._members
        self._senders = {member.results.fileno(): i for i, member in enumerate(members)}
        self._sentinels = {member.worker.sentinel: i for i, member in enumerate(members)}
        woken = self._woken.fileno()
        everything = [woken, *self._senders, *self._sentinels]
        room = [member.inputs.waits_for for member in members]
        self._poll, self._poll_for_room = poll_of(*everything), poll_of(*everything, *room)
        self._polls_for_order = [poll_of(woken, *fds) for fds in zip(room, self._senders)]

    def _drop(self, index: int) -> None:
        """Drops what a worker has sent for older orders: while its pipe is full it takes none."""
        self._receive(index)
        self._take(index)

    def _give(self, index: int, packed: Packed, tag: int) -> bool:
        with contextlib.suppress(BrokenPipeError), self._using:
            self._check_open()
            return self._members[index].inputs.offer(packed, tag)
        raise self._error(index)

    def _next(self, poll: Any, wait: bool) -> Any:
        """Returns a tag and an object, or None if what `poll` has is room, or is not waited for."""
        try:
            while True:
                while self._draining:
                    index = self._draining[0]
                    item = self._take(index)
                    if item is not None:
                        return item
                    self._draining.popleft()
                    self._check_alive(index)
                ready, ended = self._wait(poll, wait)
                if not (ready or ended):
                    return None
                self._ended |= ended
                for index in sorted(ready | ended):
                    self._receive(index)
        except BaseException:
            self.close()
            raise

    def _wait(self, poll: Any, wait: bool) -> Tuple[Set[int], Set[int]]:
        """Returns the indices of workers that have sent something, and of those that have ended."""
        begin, warn = time.monotonic(), _WARN_SECONDS
        seconds = _PATIENCE_SECONDS if wait else 0
        while True:
            with self._using:
                self._check_open()
                for member in self._members:  # of all, not only those that have sent something
                    member.results.return_slots()
                fds = [fd for fd, _ in poll.poll(seconds * 1000)]
                self._check_open()
                if fds or not wait:
                    ready = {self._senders[fd] for fd in fds if fd in self._senders}
                    return ready, {self._sentinels[fd] for fd in fds if fd in self._sentinels}
                for member in self._members:
                    member.results.is_waiting()
            if time.monotonic() - begin > warn:
                self._warn(time.monotonic() - begin)
                warn *= 2
            seconds = 1

    def _receive(self, index: int) -> bool:
        with self._using:
            self._check_open()
            if index not in self._draining:
                self._draining.append(index)
            return self._members[index].results.receive()

    def _take(self, index: int) -> Optional[Tuple[int, Any]]:
        """The next object of a worker that belongs to the present order, and its tag."""
        receiver = self._members[index].results
        with self._using:
            self._check_open()
            item = receiver.take()
            while item is not None:
                kind, tag, obj = item
                if kind == FAILED:
                    self._failing.add(index)
                elif kind == BEGUN:
                    self._begun |= {index} if tag == self._number else set()
                elif index in self._begun:
                    self._in_flight[index] -= 1
                    return tag, self._failure(index, obj) if index in self._failing else obj
                item = obj = None  # the next one may wait for its memory
                item = receiver.take()
            return None

    def _failure(self, index: int, text: bytes) -> Failure:
        self._failing.discard(index)
        worker = self._members[index].worker
        error = failure_from_bytes(text, worker.name, worker.pid or 0)
        return Failure(error or RuntimeError(f"{worker.name} failed for an unknown reason."))

    def _check_open(self) -> None:
        if self.closed:
            raise self._was_closed()
        if os.getpid() != self._owner:
            raise DataFlowTerminated(
                f"This pass of {self._name} belongs to the process that began it. Begin another "
                "pass in this process."
            )

    def _check_alive(self, index: int) -> None:
        """Raises the error of a worker that has ended, unless objects of it are left to take."""
        is_over = index in self._ended and not self._receive(index)
        if is_over or self._members[index].results.ended:
            raise self._error(index)

    def _error(self, index: int) -> Exception:
        worker = self._members[index].worker
        if not self.closed:
            worker.join(_REAP_SECONDS)
            error = worker.error()
            if self.close():
                return error or RuntimeError(
                    f"{worker.name} closed its pipe for an unknown reason."
                )
        return self._was_closed()

    def _was_closed(self) -> DataFlowTerminated:
        return DataFlowTerminated(f"{self._name} was closed while its data was waited for.")

    def _warn(self, seconds: float) -> None:
        members = list(zip(self._members, self._in_flight))
        # of those with inputs, unless they take orders
        silent = [each for each, inputs in members if inputs > 0] or self._members
        states = "\n".join(described(each.worker) for each in silent)
        logger.warning(
            f"{self._name} has given no data for {seconds:.0f} seconds. Waiting for:\n{states}"
        )


def _start_member(begin: Callable[[WorkerLoop], Worker], limits: Limits, inputs: Limits) -> _Member:
    """Makes the channels of a worker and starts it."""
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as on_error:
        sender, results = make_channel(limits)
        theirs.callback(sender.close)
        on_error.callback(results.close)
        to_worker, taken = make_channel(inputs)
        theirs.callback(taken.close)
        on_error.callback(to_worker.close)
        to_worker.attach(blocks=False)
        results.attach()
        worker = begin(WorkerLoop(taken, sender))
        results.sender = f"Worker {worker.name!r} (pid {worker.pid})"
        on_error.pop_all()
    return _Member(worker, results, to_worker)


def descriptors_of(limits: Limits, inputs: Limits = ORDERS) -> int:
    """Returns how many descriptors a worker takes in this process, at most."""
    return 2 * (limits.slots + inputs.slots) + _BESIDE_SLOTS
