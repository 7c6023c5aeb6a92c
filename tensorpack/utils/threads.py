"""Threads that can be asked to stop, and that hand over their errors.

Code that starts a thread also stops and joins it, and receives its error (`guard_thread`). The
threads here are daemons only so that a program that forgot to stop one can still exit.
"""

import queue
import threading
from contextlib import suppress
from typing import Any, Callable, Optional, Tuple, Type

__all__ = ["LoopThread", "StoppableThread", "guard_thread"]

_POLL_SECONDS = 0.1


class StoppableThread(threading.Thread):
    """A thread whose `run` looks at `stopped()` now and then.

    Args:
      evt: the event that means stop; several threads may share one. A new one by default.
    """

    def __init__(self, evt: Optional[threading.Event] = None):
        super().__init__()
        self._stop_event = threading.Event() if evt is None else evt

    def stop(self) -> None:
        """Asks the thread to stop; does not wait for it."""
        self._stop_event.set()

    def stopped(self) -> bool:
        """Tells whether the thread was asked to stop."""
        return self._stop_event.is_set()

    def queue_put_stoppable(self, q: Any, obj: Any) -> bool:
        """Waits for room in a queue of `queue` or `multiprocessing` and puts an object there.

        Returns:
          whether it is in the queue; False if the thread was asked to stop.
        """
        return self._retry(lambda seconds: q.put(obj, True, seconds), queue.Full)[0]

    def queue_get_stoppable(self, q: Any) -> Any:
        """Waits for an object in a queue of `queue` or `multiprocessing` and returns it.

        Returns None if the thread was asked to stop.
        """
        return self._retry(lambda seconds: q.get(True, seconds), queue.Empty)[1]

    def _retry(
        self, attempt: Callable[[float], Any], timed_out: Type[Exception]
    ) -> Tuple[bool, Any]:
        """Calls `attempt` with a time limit until it keeps it; returns whether it did, and what it
        returned.
        """
        for _ in iter(self.stopped, True):
            with suppress(timed_out):
                return True, attempt(_POLL_SECONDS)
        return False, None


class LoopThread(StoppableThread):
    """Calls a function again and again until stopped.

    An exception of the function ends the thread; let `guard_thread` pass it on.

    Args:
      func: called without arguments.
      pausable: whether `pause` may be used.
    """

    def __init__(self, func: Callable[[], Any], pausable: bool = True):
        super().__init__()
        self.daemon = True
        self._func = func
        self._pausable = pausable
        self._change = threading.Condition()
        self._paused = False
        self._busy = False

    def run(self) -> None:
        """Loops; called by `start`."""
        while self._begin_call():
            try:
                self._func()
            finally:
                with self._change:
                    self._busy = False
                    self._change.notify_all()

    def _begin_call(self) -> bool:
        with self._change:
            while self._paused and not self.stopped():
                self._change.wait(_POLL_SECONDS)  # another thread may set a shared stop event
            self._busy = not self.stopped()
            return self._busy

    def pause(self) -> None:
        """Returns when no call is under way; none begins until `resume`.

        Called from within the function, it returns at once.

        Raises:
          RuntimeError: if the thread was made with `pausable=False`.
        """
        self._check_pausable()
        with self._change:
            self._paused = True
            if threading.current_thread() is not self:
                self._change.wait_for(lambda: not self._busy)

    def resume(self) -> None:
        """Lets the loop go on; without a `pause` before, does nothing.

        Raises:
          RuntimeError: if the thread was made with `pausable=False`.
        """
        self._check_pausable()
        with self._change:
            self._paused = False
            self._change.notify_all()

    def stop(self) -> None:
        """Asks the loop to end after the call that is under way, paused or not."""
        super().stop()
        with self._change:
            self._change.notify_all()

    def _check_pausable(self) -> None:
        if not self._pausable:
            raise RuntimeError(f"{self.name} cannot pause: make it LoopThread(f, pausable=True).")


def guard_thread(thread: threading.Thread, on_error: Callable[[Exception], Any]) -> None:
    """Makes a thread hand its error over instead of printing it.

    An exception of `run` (an `Exception`; not SystemExit and the like) is kept as `thread.error`,
    which is None otherwise, and passed to `on_error`, called in that thread.

    Args:
      thread: a thread that is not started yet.
      on_error: called with the exception.

    Raises:
      RuntimeError: if the thread was started already.
    """
    if thread.ident is not None:
        raise RuntimeError(f"{thread.name} runs already: guard_thread() comes before start().")
    original = thread.run

    def run() -> None:
        try:
            original()
        except Exception as error:
            thread.error = error  # type: ignore[attr-defined]
            on_error(error)

    thread.error = None  # type: ignore[attr-defined]
    thread.run = run  # type: ignore[method-assign]
