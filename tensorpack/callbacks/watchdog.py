"""Reports what a stalled run is doing, and optionally ends it."""

import multiprocessing
import sys
import threading
import time
import traceback
from typing import Callable, Optional

from tensorpack.tfutils.queues import QueueControl, all_queues
from tensorpack.utils import logger
from tensorpack.utils.checks import as_positive
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed
from tensorpack.utils.workers.worker import stack_of

from .base import Callback

_POLL_SECONDS = 1.0


class StalledTraining(RuntimeError):
    """No step finished and no callback returned for too long."""


class Watchdog(Callback):
    """Reports a run in which no step finishes and no callback returns for `timeout` seconds, which
    must be more than the longest step and the slowest callback take.

    The report in the log has the fill of every queue of the graph, the Python stacks of all threads
    and of the processes of `utils.workers.worker.make_worker`, and the state of the other processes
    that `multiprocessing` started here. Each stall is reported once. The steps are not slowed down:
    a thread checks the trainer's counter about once a second. A suspended process does not stall.

    With `error`, the run is asked to end as well, with `StalledTraining`. That wakes a step which
    waits for a queue, but not Python code on the main thread that checks no stop token.
    """

    _chief_only = False
    sets_up_last = True  # so that it finds the queues of the other callbacks

    def __init__(
        self,
        timeout: float = 300.0,
        error: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = as_positive(self, "timeout", timeout)
        self._error = error
        self._clock = clock
        self._returned = 0
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def _setup_graph(self) -> None:
        self._queues = all_queues(self.graph)

    def _before_train(self) -> None:
        token = self.trainer.stop_token
        self._mark, self._since, self._reported = self._progress(), self._clock(), False
        self._over.clear()
        self._thread = threading.Thread(target=self._watch, name="Watchdog", daemon=True)
        guard_thread(self._thread, lambda error: token.request(Failed(error, "Watchdog")))
        self._thread.start()

    def _after_train(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def callback_returned(self) -> None:
        self._returned += 1

    def check(self) -> None:
        """Checks once whether the run makes progress, and reports if not. Called by its thread."""
        now, mark = self._clock(), self._progress()
        if mark != self._mark:
            self._mark, self._since, self._reported = mark, now, False
        elif not self._reported and now - self._since >= self._timeout:
            self._reported = True
            self._report(now - self._since)

    def _progress(self) -> object:
        return self.trainer.global_step, self._returned

    def _watch(self) -> None:
        poll, last = min(_POLL_SECONDS, self._timeout / 4), self._clock()
        while not self._over.wait(poll):
            # While the process was suspended, the trainer could not go on either.
            self._since += max(0.0, self._clock() - last - poll)
            self.check()
            last = self._clock()

    def _report(self, seconds: float) -> None:
        what = (
            f"No step finished and no callback returned for {seconds:.0f} seconds, at "
            f"global_step={self.trainer.global_step}."
        )
        fill = "\n".join(self._fill(queue) for queue in self._queues) or "  none"
        stacks = f"Threads:\n{_stacks()}Processes:\n{self._stacks_of_processes()}"
        logger.warning(f"{what}\nQueues:\n{fill}\n{stacks}")
        if self._error:
            self.trainer.stop_token.request(Failed(StalledTraining(what), "Watchdog"))

    def _stacks_of_processes(self) -> str:
        text = ""
        for process in sorted(multiprocessing.active_children(), key=lambda each: each.pid or 0):
            if self._over.is_set():  # do not wait for more answers
                return text + "  the run is ending"
            text += f"{process.name} (pid {process.pid}):\n{stack_of(process)}\n"
        return text or "  none"

    def _fill(self, queue: QueueControl) -> str:
        try:
            size = str(queue.size(self.trainer.sess))
        except Exception as error:  # the session may be what is broken; the stacks tell more
            size = f"unknown ({type(error).__name__})"
        room = f" of {queue.capacity}" if queue.capacity > 0 else ""
        return f"  {queue.op.name}: {size}{room}"


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "".join(
        f"{names.get(ident, ident)}:\n" + "".join(traceback.format_stack(frame))
        for ident, frame in sys._current_frames().items()
    )
