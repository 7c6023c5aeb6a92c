"""Reports what a stalled run is doing, and optionally ends it."""

import multiprocessing
import sys
import threading
import traceback
from typing import Optional

from tensorpack.utils import logger
from tensorpack.utils.checks import as_positive
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed
from tensorpack.utils.workers.worker import described

from .base import Callback

_POLL_SECONDS = 1.0


class StalledTraining(RuntimeError):
    """No step finished and no callback returned for too long."""


class Watchdog(Callback):
    """Reports a run in which no step finishes and no callback returns for `timeout` seconds, which
    must be more than the longest step and the slowest callback take.

    The report in the log has the Python stacks of all threads of this process, and the state of the
    processes that `multiprocessing` started here. Each stall is reported once. A thread looks at
    the trainer's counter about once a second. A suspended process does not stall.

    With `error`, the run is asked to end as well, with `StalledTraining`. That wakes a step which
    waits for a queue, but not Python code on the main thread that checks no stop token.
    """

    _chief_only = False

    def __init__(self, timeout: float = 300.0, error: bool = False) -> None:
        self._timeout = as_positive(self, "timeout", timeout)
        self._error = error
        self._returned = 0
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def _before_train(self) -> None:
        token = self.trainer.stop_token
        self._mark, self._waited = self._progress(), 0.0
        self._over.clear()
        thread = threading.Thread(target=self._watch, name="Watchdog", daemon=True)
        guard_thread(thread, lambda error: token.request(Failed(error, "Watchdog")))
        thread.start()
        self._thread = thread

    def _after_train(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def callback_returned(self) -> None:
        self._returned += 1

    def _progress(self) -> object:
        return self.trainer.global_step, self._returned

    def _watch(self) -> None:
        poll = min(_POLL_SECONDS, self._timeout / 4)
        while not self._over.wait(poll):
            self.check(poll)

    def check(self, seconds: float) -> None:
        """Looks for progress since the last time, `seconds` ago. Called by its thread."""
        mark, before = self._progress(), self._waited
        self._waited = before + seconds if mark == self._mark else 0.0
        self._mark = mark
        if before < self._timeout <= self._waited:
            self._report()

    def _report(self) -> None:
        what = (
            f"No step finished and no callback returned for {self._timeout:g} seconds, at "
            f"global_step={self.trainer.global_step}."
        )
        processes = "\n".join(map(described, multiprocessing.active_children())) or "none"
        logger.warning(f"{what}\nThreads:\n{_stacks()}Processes:\n{processes}")
        if self._error:
            self.trainer.stop_token.request(Failed(StalledTraining(what), "Watchdog"))


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "".join(
        f"{names.get(ident, ident)}:\n" + "".join(traceback.format_stack(frame))
        for ident, frame in sys._current_frames().items()
    )
