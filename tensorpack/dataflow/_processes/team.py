"""Worker processes that take orders and send datapoints, and how their owner waits for them."""

import itertools
import os
import threading
import time
from collections import deque
from multiprocessing import Pipe
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from tensorpack.utils import logger
from tensorpack.utils.packed import Packed
from tensorpack.utils.processes import ProcessGroup
from tensorpack.utils.serialize import dumps
from tensorpack.utils.worker_errors import WorkerDied, failure_from_bytes

from ..base import DataFlowTerminated
from .channel import Limits
from .descriptor import closed_after_fork
from .file_limit import explained
from .lane import Lane, descriptors_of, poll_of, start_lane
from .orders import BEGUN, FAILED

__all__ = ["Failure", "Team"]

_PATIENCE_SECONDS = 0.05  # until workers are told that we wait
_WARN_SECONDS = 60.0
_REAP_SECONDS = 2.0


class Failure(NamedTuple):
    """What comes instead of a result.

    Attributes:
      error: to be raised.
    """

    error: Exception


class Team:
    """Worker processes that do the same work; used by one thread, closed by any.

    It is closed by every error but those in a `Failure`, also by a KeyboardInterrupt: something may
    have been lost on the way then.

    Args:
      target: what each calls, with its `Orders`, its index, and `args`.
      args: see there.
      sent: the object in `args` that comes from the user, and what messages call it.
      count: how many workers.
      limits: of what each may have on the way.
      method: how they are started.
      name: what they are called in messages.
      inputs: limits of what may be on the way to each, if it gets its inputs by `send`.

    Raises:
      OSError: there cannot be so many processes, or files of this one.
      TypeError: `sent` cannot be sent to them.
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
        inputs: Optional[Limits] = None,
    ) -> None:
        self._owner = os.getpid()
        self._name = name
        self._lanes: List[Lane] = []
        # Reentrant: a handler of signals may close a flow in the midst of what it does.
        self._closing = threading.RLock()
        self._using = threading.RLock()  # held by whoever uses the pipes, so that none is closed
        self._closed = False
        self._woken, self._waker = Pipe(duplex=False)
        closed_after_fork(self._woken)
        closed_after_fork(self._waker)
        self._number = 0
        # whose objects are wanted; those of an older order are not
        self._begun: Set[int] = set() if inputs is None else set(range(count))
        self._on_the_way = [0] * count  # inputs without a result yet
        self._failing: Set[int] = set()
        self._ended: Set[int] = set()
        self._draining: Deque[int] = deque()
        try:
            with explained(
                f"{name} with {count} processes", count * descriptors_of(limits, inputs)
            ):
                for index in range(count):
                    lane = start_lane(target, args, sent, index, limits, method, name, inputs)
                    self._lanes.append(lane)
            self._set_up_polls()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def closed(self) -> bool:
        """Whether it was closed, by `close` or because of an error."""
        return self._closed

    def order(self, orders: Sequence[Dict[str, Any]]) -> None:
        """Gives each worker something new to do, and forgets what they sent for older orders.

        Raises:
          DataFlowTerminated: the team was closed.
          Exception: a worker ended.
        """
        self._number += 1
        self._begun.clear()
        texts = [dumps({**order, "number": self._number}) for order in orders]
        try:
            for index, text in enumerate(texts):
                self._give(index, self._lanes[index].orders.send_bytes, text)
        except BaseException:
            self.close()
            raise

    def send(self, packed: Packed) -> Optional[int]:
        """Sends an input to the worker that has the least to do among those with room for it.

        Returns:
          the tag that its result will have; None if none has room.

        Raises:
          DataFlowTerminated: the team was closed.
          Exception: a worker ended.
        """
        try:
            for index in sorted(range(len(self._lanes)), key=self._on_the_way.__getitem__):
                if self._give(index, self._lanes[index].inputs.offer, packed, self._number):
                    self._on_the_way[index] += 1
                    self._number += 1
                    return self._number - 1
            return None
        except BaseException:
            self.close()
            raise

    def take(self) -> Tuple[int, Any]:
        """Waits for what comes next from any worker; returns its tag and the object, which is a
        `Failure` if the worker failed to make it.

        Raises:
          DataFlowTerminated: the team was closed.
          Exception: a worker ended; its own exception, or a `WorkerDied` or `WorkerFailed`.
        """
        try:
            item = self._next(self._poll, True)
            while item is None:
                item = self._next(self._poll, True)
            return item
        except BaseException:
            self.close()
            raise

    def take_if(self, or_room: bool = False) -> Optional[Tuple[int, Any]]:
        """Returns what `take` does if it is there already, or else None.

        Args:
          or_room: wait until something comes, or until there may be room for `send`.
        """
        try:
            return self._next(self._poll_for_room if or_room else self._poll, or_room)
        except BaseException:
            self.close()
            raise

    def take_from(self, index: int) -> Tuple[int, Any]:
        """Waits for what comes next from one worker; what others send stays where it is.

        Raises:
          DataFlowTerminated: the team was closed.
          WorkerDied: any worker died.
          Exception: that worker ended by it.
        """
        try:
            item = self._take(index)
            while item is None:
                self._note_ends(self._wait(self._polls[index], True)[1], index)
                self._receive(index)
                item = self._take(index)
                if item is None:
                    self._check_alive(index)
            return item
        except BaseException:
            self.close()
            raise

    def close(self) -> bool:
        """Ends the workers and whoever waits for them. May be called more than once.

        Returns:
          whether it was still open.
        """
        if os.getpid() != self._owner:
            return False
        with self._closing:
            if self._closed:
                return False
            self._closed = True
            self._waker.send_bytes(b".")
            try:
                ProcessGroup([lane.worker for lane in self._lanes]).close()
            finally:
                with self._using:
                    self._waker.close()
                    self._woken.close()
                    for lane in self._lanes:
                        lane.close()
        return True

    def _set_up_polls(self) -> None:
        lanes = self._lanes
        self._senders = {lane.receiver.fileno(): i for i, lane in enumerate(lanes)}
        self._sentinels = {lane.worker.sentinel: i for i, lane in enumerate(lanes)}
        woken = self._woken.fileno()
        everyone = [woken, *self._senders, *self._sentinels]
        room = [lane.inputs.waits_for for lane in lanes if lane.inputs is not None]
        self._poll, self._poll_for_room = poll_of(*everyone), poll_of(*everyone, *room)
        self._polls = [poll_of(woken, lane.receiver.fileno(), *self._sentinels) for lane in lanes]

    def _give(self, index: int, send: Callable[..., Any], *args: Any) -> Any:
        try:
            with self._using:
                self._check_open()
                return send(*args)
        except BrokenPipeError as error:
            raise self._error(index) from error

    def _next(self, poll: Any, wait: bool) -> Optional[Tuple[int, Any]]:
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

    def _wait(self, poll: Any, wait: bool) -> Tuple[Set[int], Set[int]]:
        """Returns the indices of those who have sent something, and of those who have ended."""
        begin, warn = time.monotonic(), _WARN_SECONDS
        for seconds in itertools.chain([_PATIENCE_SECONDS if wait else 0], itertools.repeat(1)):
            with self._using:
                self._check_open()
                for lane in self._lanes:  # others than the one that has something for us, too
                    lane.receiver.return_slots()
                fds = [fd for fd, _ in poll.poll(seconds * 1000)]
                self._check_open()
                if fds or not wait:
                    ready = {self._senders[fd] for fd in fds if fd in self._senders}
                    return ready, {self._sentinels[fd] for fd in fds if fd in self._sentinels}
                for lane in self._lanes:
                    lane.receiver.is_waiting()
            if time.monotonic() - begin > warn:
                self._warn(time.monotonic() - begin)
                warn *= 2
        raise RuntimeError("unreachable: the loop above has no end")

    def _note_ends(self, ended: Set[int], index: int) -> None:
        """Notes that workers have ended while one is waited for.

        An exception is raised when its place comes, but who died did not die at a place, and the
        one that is waited for may take long.
        """
        for each in sorted(ended - self._ended):
            self._ended.add(each)
            worker = self._lanes[each].worker
            worker.join(_REAP_SECONDS)
            if each != index and isinstance(worker.error(), WorkerDied):
                raise self._error(each)
            for other, poll in enumerate(self._polls):
                if other != each:
                    poll.unregister(worker.sentinel)

    def _receive(self, index: int) -> bool:
        with self._using:
            self._check_open()
            if index not in self._draining:
                self._draining.append(index)
            return self._lanes[index].receiver.receive()

    def _take(self, index: int) -> Optional[Tuple[int, Any]]:
        """The next object of a worker that belongs to the present order, and its tag."""
        receiver = self._lanes[index].receiver
        with self._using:
            self._check_open()
            item = receiver.take()
            while item is not None:
                kind, tag, obj = item
                if kind == FAILED:
                    self._failing.add(index)
                elif kind == BEGUN:
                    self._mark(index, tag)
                elif index in self._begun:
                    self._on_the_way[index] -= 1
                    return tag, self._failure(index, obj) if index in self._failing else obj
                item = obj = None  # memory that the next one may be waiting for
                item = receiver.take()
            return None

    def _mark(self, index: int, number: int) -> None:
        if number == self._number:
            self._begun.add(index)

    def _failure(self, index: int, text: bytes) -> Failure:
        self._failing.discard(index)
        worker = self._lanes[index].worker
        error = failure_from_bytes(text, worker.name, worker.pid or 0)
        return Failure(error or RuntimeError(f"{worker.name} failed, and nobody knows why."))

    def _check_open(self) -> None:
        if self._closed:
            raise DataFlowTerminated(f"{self._name} was closed while somebody waited for its data.")
        if os.getpid() != self._owner:
            raise DataFlowTerminated(
                f"This pass of {self._name} belongs to the process that began it. Begin another "
                "one in this process."
            )

    def _check_alive(self, index: int) -> None:
        """Raises what is wrong with a worker that has ended and of which nothing is left to take;
        looks for what is left.
        """
        if self._lanes[index].receiver.ended:
            raise self._error(index)
        if index in self._ended and not self._receive(index):
            raise self._error(index)

    def _error(self, index: int) -> Exception:
        worker = self._lanes[index].worker
        if not self._closed:
            worker.join(_REAP_SECONDS)
            error = worker.error()
            if self.close():
                return error or RuntimeError(f"{worker.name} has closed its pipe: reason unknown.")
        return DataFlowTerminated(f"{self._name} was closed while somebody waited for its data.")

    def _warn(self, seconds: float) -> None:
        stacks = "\n".join(f"{lane.worker.name}: {lane.worker.stack()}" for lane in self._lanes)
        logger.warning(f"{self._name} has given no data for {seconds:.0f} seconds.\n{stacks}")
