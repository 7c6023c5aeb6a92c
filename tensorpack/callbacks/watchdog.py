"""Reports what a stalled run is doing, and optionally ends it."""

import multiprocessing
import sys
import threading
import traceback
from typing import Any

from tensorpack.utils import logger
from tensorpack.utils.checks import as_positive
from tensorpack.utils.stopping import Failed
from tensorpack.utils.workers.worker import described

from .base import Callback


class StalledTraining(RuntimeError):
    """No step finished for too long."""


class Watchdog(Callback):
    """Logs the stacks of all threads and the states of the processes that `multiprocessing` started
    here, once, when no step begins or ends for `timeout` seconds: more than the longest step, and
    all callbacks between two steps, take.

    With `error`, the run is asked to end as well, with `StalledTraining`. That wakes a step which
    waits for a queue, but not Python code on the main thread that checks no stop token.
    """

    _chief_only = False
    _thread: Any = None

    def __init__(self, timeout: float = 300.0, error: bool = False) -> None:
        self._timeout = as_positive(self, "timeout", timeout)
        self._error = error
        self._over = threading.Event()

    def _before_train(self) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._watch, name="Watchdog", daemon=True)
        self._thread.start()

    def _after_train(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        poll, last, waited = min(1.0, self._timeout / 4), None, 0.0
        while not self._over.wait(poll):
            now = self.trainer.global_step, self.trainer.in_step
            # no clock: a suspended process does not stall
            last, waited = now, waited + poll if now == last else 0.0
            if self._timeout <= waited < self._timeout + poll:  # once
                self._report()

    def _report(self) -> None:
        step = self.trainer.global_step
        what = f"No step finished for {self._timeout:g} seconds, at global_step={step}."
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        stacks = [
            f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
            for ident, frame in sys._current_frames().items()
        ]
        processes = "\n".join(map(described, multiprocessing.active_children())) or "none"
        logger.warning(f"{what}\nThreads:\n{''.join(stacks)}Processes:\n{processes}")
        if self._error:
            self.trainer.stop_token.request(Failed(StalledTraining(what), "Watchdog"))
