"""Hears at once when a process ends by itself."""

import threading
import time
from multiprocessing import Pipe
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Dict

from . import logger
from .worker import error_of

__all__ = ["WorkerWatch"]

# The end of a process is visible a little before its exit code.
_REAP_SECONDS = 0.5
_REAP_POLL_SECONDS = 0.005


class WorkerWatch:
    """A context within which a thread sleeps until one of the watched processes ends.

    Args:
      on_end: called on that thread with a process that ended wrongly and an exception that says
        how, see `worker.error_of`. Processes that ended in order are forgotten.
    """

    def __init__(self, on_end: Callable[[BaseProcess, Exception], Any]) -> None:
        self._on_end = on_end
        self._lock = threading.Lock()
        self._watched: Dict[Any, BaseProcess] = {}
        self._closing = False
        self._woken, self._waker = Pipe(duplex=False)
        self._thread = threading.Thread(target=self._run, name="WorkerWatch", daemon=True)

    def __enter__(self) -> "WorkerWatch":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def add(self, process: BaseProcess) -> None:
        """Watches a process that is started; it must not be `close()`d before it is removed."""
        with self._lock:
            self._watched[process.sentinel] = process
            self._waker.send_bytes(b".")

    def remove(self, process: BaseProcess) -> None:
        """Watches it no more: to be called before it is asked to end."""
        with self._lock:
            self._watched.pop(process.sentinel, None)
            self._waker.send_bytes(b".")

    def close(self) -> None:
        """Ends the thread, after a last look; the processes go on. May be called more than once."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._waker.send_bytes(b".")
        if self._thread.ident is not None:
            self._thread.join()
        self._woken.close()
        self._waker.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                closing, watched = self._closing, dict(self._watched)
            for ready in wait([self._woken, *watched], 0 if closing else None):
                if ready is self._woken:
                    self._woken.recv_bytes()
                else:
                    self._ended(ready, watched[ready])
            if closing:
                return

    def _ended(self, sentinel: Any, process: BaseProcess) -> None:
        with self._lock:
            if self._watched.pop(sentinel, None) is not process:
                return  # removed meanwhile
        deadline = time.monotonic() + _REAP_SECONDS
        while process.exitcode is None and time.monotonic() < deadline:
            time.sleep(_REAP_POLL_SECONDS)
        if process.exitcode is None:
            logger.warning(f"{process.name} has closed its descriptors: it is watched no more.")
            return
        error = error_of(process)
        if error is None:
            return
        try:
            self._on_end(process, error)
        except Exception:  # the other processes must still be watched
            logger.exception(f"Could not tell that {process.name} has ended.")
