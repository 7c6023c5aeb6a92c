"""Stoppable threads, threads that share a TensorFlow session, and the address of process helpers.

Code that starts a thread also stops and joins it, and receives its error (`guard_thread`). The
threads here are daemons only so that a program that forgot to stop one can still exit.
"""

import multiprocessing
import queue
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from . import logger
from .workers.processes import (  # noqa: F401  (for those who import them here)
    ProcessGroup,
    ensure_proc_terminate,
    mask_sigint,
    set_parent_death_signal,
    start_proc_mask_signal,
    subproc_call,
)

_POLL_SECONDS = 0.1


class _Stoppable(threading.Thread):
    """What the threads below share; a class of its own so that a thread can be both of them."""

    def __init__(self) -> None:
        super().__init__()
        self._stop_event = threading.Event()

    def stop(self) -> None:
        """Asks the thread to stop; does not wait for it."""
        self._stop_event.set()

    def stopped(self) -> bool:
        """Tells whether the thread was asked to stop."""
        return self._stop_event.is_set()

    def queue_put_stoppable(self, q: Any, obj: Any) -> bool:
        """Waits for room in a queue of `queue` or `multiprocessing` and puts an object there.

        Returns False, with nothing put, if the thread was asked to stop.
        """
        while not self.stopped():
            with suppress(queue.Full):
                q.put(obj, True, _POLL_SECONDS)
                return True
        return False

    def queue_get_stoppable(self, q: Any) -> Any:
        """Waits for an object in a queue of `queue` or `multiprocessing` and returns it; None if
        the thread was asked to stop.
        """
        while not self.stopped():
            with suppress(queue.Empty):
                return q.get(True, _POLL_SECONDS)
        return None


class StoppableThread(_Stoppable):
    """A thread whose `run` looks at `stopped()` now and then.

    `evt` is the event that means stop, by default a new one; several threads may share one.
    """

    def __init__(self, evt: Optional[threading.Event] = None):
        super().__init__()
        if evt is not None:
            self._stop_event = evt


class LoopThread(StoppableThread):
    """Calls a function, without arguments, again and again until stopped.

    Paused or not, it ends after the call that is under way when it is asked to stop. An exception
    of the function ends it; let `guard_thread` pass it on. Every loop can pause, whether `pausable`
    or not.
    """

    def __init__(self, func: Callable[[], Any], pausable: bool = True):
        super().__init__()
        self.daemon = True
        self._func = func
        self._call = threading.RLock()  # held during a call; the function itself may pause
        self._resumed = threading.Event()
        self._resumed.set()

    def run(self) -> None:
        """Loops; called by `start`."""
        while not self.stopped():
            if self._resumed.wait(_POLL_SECONDS):  # a stop event wakes nothing
                with self._call:
                    if self._resumed.is_set():
                        self._func()

    def pause(self) -> None:
        """Returns when no call is under way; none begins until `resume`.

        Called from within the function, it returns at once.
        """
        self._resumed.clear()
        with self._call:
            pass

    def resume(self) -> None:
        """Continues the loop after a `pause`; does nothing otherwise."""
        self._resumed.set()


def guard_thread(thread: threading.Thread, on_error: Callable[[Exception], Any]) -> None:
    """Makes a thread, before its start, hand its error over instead of printing it.

    What `run` raises becomes `thread.error`, which is None otherwise, and is passed to `on_error`,
    called in that thread. SystemExit and the like, by which a thread ends without a word, are the
    cause of a RuntimeError.
    """
    original = thread.run

    def run() -> None:
        try:
            original()
        except BaseException as raised:
            error: Any = raised
            if not isinstance(raised, Exception):
                what = f"{raised!r} ended the thread {thread.name}: it cannot end the program there"
                error = RuntimeError(f"{what}. Raise an Exception instead.")
                error.__cause__ = raised
            thread.error = error  # type: ignore[attr-defined]
            on_error(error)

    thread.error = None  # type: ignore[attr-defined]
    thread.run = run  # type: ignore[method-assign]


class ShareSessionThread(_Stoppable):
    """Runs under the default TensorFlow session of the thread that calls `start()`.

    TensorFlow's default session and graph belong to a thread; a new thread has neither. Wrap a
    thread in this class and start the wrapper, or derive from it and override `run`: both run with
    the session and its graph as the defaults. It can be stopped as a `StoppableThread` can.

    Args:
      th: the thread whose `run` is to be executed; its `stop`, if it has one, is forwarded.
    """

    def __init__(self, th: Optional[threading.Thread] = None):
        super().__init__()
        self.daemon = True
        self._th = th
        self._sess: Any = None
        if th is not None:
            self.name = th.name

    def start(self) -> None:
        """Captures the default session and starts the thread."""
        tensorflow = sys.modules.get("tensorflow")  # without it there is no session
        if tensorflow is not None:
            self._sess = tensorflow.compat.v1.get_default_session()
        original = self.run

        def run_in_session() -> None:
            with self.default_sess():
                original()

        self.run = run_in_session  # type: ignore[method-assign]
        super().start()

    def run(self) -> None:
        """Runs the wrapped thread's `run`. Override it if there is none."""
        if self._th is not None:
            self._th.run()

    def stop(self) -> None:
        """Asks this thread and the wrapped one to stop."""
        super().stop()
        if hasattr(self._th, "stop"):
            self._th.stop()

    @contextmanager
    def default_sess(self) -> Iterator[Any]:
        """Makes the captured session and its graph the defaults of this block; yields the session.

        Warns and yields None if there was no default session at `start()`.
        """
        if self._sess is None:
            logger.warning(
                f"{self.name} was started without a default TensorFlow session: start it inside "
                "`with sess.as_default()`."
            )
            yield None
            return
        with self._sess.graph.as_default(), self._sess.as_default():
            yield self._sess


class DIE:
    """Marks the end of a queue: nothing follows it."""


class OrderedContainer:
    """Accepts results in any order and returns them by number from `start` on, without gaps."""

    def __init__(self, start: int = 0):
        self._next = start
        self._waiting: Dict[int, Any] = {}

    def put(self, rank: int, val: Any) -> None:
        """Adds the result with a number."""
        self._waiting[rank] = val

    def has_next(self) -> bool:
        """Returns whether the next number is available."""
        return self._next in self._waiting

    def get(self) -> Tuple[int, Any]:
        """Returns the next number and its result; a KeyError if it is not available yet."""
        result = self._next, self._waiting.pop(self._next)
        self._next += 1
        return result


class OrderedResultGatherProc(multiprocessing.Process):
    """A process that takes numbered results from a queue and returns them in order.

    It ends when each of the producers has put `(DIE, None)`, which `get` returns as well. The
    queue, of `multiprocessing`, has pairs `(number, result)`, the first of them numbered `start`.
    """

    def __init__(self, data_queue: Any, nr_producer: int, start: int = 0):
        super().__init__()
        self.data_queue = data_queue
        self.nr_producer = nr_producer
        self.ordered_container = OrderedContainer(start)
        self.result_queue: Any = multiprocessing.Queue()

    def run(self) -> None:
        """Gathers until all producers have ended; called by `start`."""
        ended = 0
        while ended < self.nr_producer:
            rank, result = self.data_queue.get()
            if rank is DIE:
                ended += 1
                self.result_queue.put((DIE, None))
                continue
            self.ordered_container.put(rank, result)
            while self.ordered_container.has_next():
                self.result_queue.put(self.ordered_container.get())

    def get(self) -> Tuple[Any, Any]:
        """Waits for the next number and its result; `(DIE, None)` where a producer has ended."""
        return self.result_queue.get()


def enable_death_signal(_warn: bool = True) -> None:
    """Makes this process, a child, get SIGHUP when its parent dies, even by SIGKILL; on Linux.

    Elsewhere this only warns, if it may. See `set_parent_death_signal`.
    """
    if not set_parent_death_signal(signal.SIGHUP) and _warn:
        logger.warning(f"{sys.platform} sends no signal when a parent dies: end with its pipe.")
