"""Starts threads and processes before the training, and stops and joins them after it."""

import ctypes
import multiprocessing.process
import signal
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import Any, Optional, Sequence, Union

from tensorpack.utils import logger
from tensorpack.utils.concurrency import guard_thread, start_proc_mask_signal
from tensorpack.utils.stopping import Failed, Interrupted
from tensorpack.utils.workers.worker import Worker
from tensorpack.utils.workers.worker_errors import WorkerDied, is_end_of_group

from .base import Callback

_Startable = Union[threading.Thread, multiprocessing.process.BaseProcess]
_LOOK_SECONDS = 0.1  # how often it looks whether the processes live
_JOIN_SECONDS = 5.0  # for all together
_JOIN_PLAIN_SECONDS = 0.5  # for a thread that cannot be told to stop


class StartProcOrThread(Callback):
    """Owns threads and processes, not started yet, for the time of the training. If `stop_at_last`,
    it stops and joins them after it.

    Threads that have a method `stop` are told as soon as the run is asked to end. An exception that
    ends a thread ends the run and is raised by `train()`; not SystemExit with the code 0 or None. A
    process that ends with an exit code other than 0 ends the run, too, with `WorkerDied`. After a
    signal, a thread without `stop` ends as by `sys.exit`, also where it waits for ZeroMQ.

    A process of `utils.workers.worker.Worker` also dies with this one, even by `kill -9`. It
    ends the run with the exception that ended it, and can be said to be needed until the end. A
    plain process of `multiprocessing` does none of it.
    """

    _chief_only = False

    def __init__(
        self, startable: Union[_Startable, Sequence[_Startable]], stop_at_last: bool = True
    ) -> None:
        started: Any = list(startable) if isinstance(startable, (list, tuple)) else [startable]
        self._processes = [item for item in started if not isinstance(item, threading.Thread)]
        self._threads = [item for item in started if isinstance(item, threading.Thread)]
        self._names = ", ".join(item.name for item in started)
        self._stop_at_last = stop_at_last
        self._forget = ExitStack()

    def _before_train(self) -> None:
        logger.info(f"Starting {self._names} ...")
        start_proc_mask_signal(self._processes)
        # The trainer is held weakly, and threads may report when it is gone.
        token = self._token = self.trainer.stop_token
        if self._processes:
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=(over,), name="WorkerWatch")
            watch.daemon = True
            watch.start()
            self._forget.callback(watch.join)
            self._forget.callback(over.set)
        for thread in self._threads:
            guard_thread(thread, partial(self._report_failure, thread.name))
            thread.start()
            if self._stop_at_last and hasattr(thread, "stop"):
                self._forget.callback(token.on_request(thread.stop))

    def _report_failure(self, name: str, error: Exception) -> None:
        cause = error.__cause__
        if not isinstance(cause, SystemExit) or cause.code not in (None, 0):
            self._token.request(Failed(error, name))

    def _watch(self, over: threading.Event) -> None:
        watched, is_over = list(self._processes), False
        while watched and not is_over:
            is_over = over.wait(_LOOK_SECONDS)
            for process in [process for process in watched if process.exitcode is not None]:
                watched.remove(process)
                error = _error_of(process)
                if error is not None and not is_end_of_group(error, self._token):
                    self._report_failure(process.name, error)

    def _after_train(self) -> None:
        self._forget.close()
        if not self._stop_at_last:
            return
        threads = [thread for thread in self._threads if thread.is_alive()]
        processes = [process for process in self._processes if process.pid is not None]
        alive = [process for process in processes if process.is_alive()]
        for item in threads + processes:
            logger.info(f"Stopping {item.name} ...")
            stop = item.terminate if item in processes else getattr(item, "stop", None)
            if stop is not None:
                stop()
        deadline = time.monotonic() + _JOIN_SECONDS
        in_main = threading.current_thread() is threading.main_thread()
        interrupted = in_main and isinstance(self.trainer.stop_token.reason, Interrupted)
        for thread in threads:
            _join_thread(thread, deadline, interrupted)
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                logger.error(f"Cannot join process {process.name}. It is killed.")
                process.kill()
                process.join()
            error = _error_of(process) if process in alive else None
            if error is not None and not isinstance(error, WorkerDied):
                logger.warning(f"{process.name} failed when it was told to stop: {error!r}")


def _error_of(process: Any) -> Optional[Exception]:
    """How a process of `multiprocessing` ended; None if it runs or ended in order."""
    if isinstance(process, Worker):
        return process.error()
    code = process.exitcode
    return WorkerDied(process.name, process.pid, code) if code else None


def _join_thread(thread: threading.Thread, deadline: float, interrupted: bool) -> None:
    can_stop = hasattr(thread, "stop")
    thread.join(max(0.0, deadline - time.monotonic()) if can_stop else _JOIN_PLAIN_SECONDS)
    if interrupted and not can_stop:
        _exit_thread(thread)
    if thread.is_alive() and can_stop:
        logger.error(f"Cannot join thread {thread.name}.")
    elif thread.is_alive():
        logger.warning(
            f"Thread {thread.name} still runs: it has no stop(). Derive it from StoppableThread, "
            "and look at stopped() in its loop."
        )


def _exit_thread(thread: threading.Thread) -> None:
    """Raises SystemExit in a thread that is alive.

    What it waits for may have ended by the same signal. Once the program closes the socket in which
    a thread waits, ZeroMQ aborts it.
    """
    ident, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    if thread.is_alive() and ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error):
        before = signal.signal(signal.SIGURG, lambda *_: None)
        try:
            signal.pthread_kill(thread.ident or 0, signal.SIGURG)  # ends a system call
            thread.join(_JOIN_PLAIN_SECONDS)
        finally:
            signal.signal(signal.SIGURG, before)
