"""Threads that are started together and joined together, but never waited for without end."""

import sys
import threading
import time
import traceback
from typing import Callable, List

from tensorpack.utils import logger

__all__ = ["ThreadPool"]

_GRACE_SECONDS = 2.0


class ThreadPool:
    """Some threads that do the same work, and end when their owner tells the work to.

    They are daemons, for the sake of those that cannot be told: a thread within a function that
    never returns must not keep the program from its end.
    """

    def __init__(self, name: str, grace_seconds: float = _GRACE_SECONDS) -> None:
        """
        Args:
          name: of the threads; each has its number behind it.
          grace_seconds: how long `join` waits for them.
        """
        self._name = name
        self._grace_seconds = grace_seconds
        self._threads: List[threading.Thread] = []
        self._starting = threading.Lock()
        self._over = False
        self._left_behind: List[threading.Thread] = []

    def start(self, work: Callable[[int], None], num: int) -> None:
        """Starts the threads, unless `join` was called before.

        Args:
          work: called in each thread with its number, from 0. It hands on its own errors.
          num: the number of threads.

        Raises:
          RuntimeError: the system gives no more threads. Those that were started are running.
        """
        with self._starting:
            for number in range(0 if self._over else num):
                thread = threading.Thread(
                    target=work, args=(number,), name=f"{self._name}-{number}", daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def join(self) -> bool:
        """Waits until the threads have ended, but not for longer than the grace.

        A thread that has not is left behind, with a warning that shows what it is doing. It is
        waited for once, even if this is called again.

        Returns:
          Whether all have ended. False at once, without a warning, if one of the threads calls
          this (garbage collection may do that to it), or if the interpreter is about to exit, when
          daemons do not run any more.
        """
        if threading.current_thread() in self._threads or sys.is_finalizing():
            return False
        with self._starting:  # by another thread: none of them must come after us
            self._over = True
        deadline = time.monotonic() + self._grace_seconds
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            if thread not in self._left_behind:
                thread.join(max(0.0, deadline - time.monotonic()))
        alive = [thread for thread in started if thread.is_alive()]
        for thread in alive:
            if thread not in self._left_behind:
                self._left_behind.append(thread)
                self._warn_of(thread)
        return not alive

    def _warn_of(self, thread: threading.Thread) -> None:
        frame = sys._current_frames().get(thread.ident or 0)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(not known)\n"
        logger.warning(
            f"{thread.name} was told to stop but is busy after {self._grace_seconds:g} seconds. It "
            "is left behind: it ends when what it is in returns, or with the program. It is in:\n"
            f"{stack.rstrip()}"
        )
