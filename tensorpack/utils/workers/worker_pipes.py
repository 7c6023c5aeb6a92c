"""The three pipes between a worker process and the process that started it.

The *lifeline* carries nothing: its end tells the worker that the other process is gone. The
*report* carries the text of the exception that ended the worker. The *crash* is
what `faulthandler` writes in one, after a first byte which says that the worker has begun.
"""

import fcntl
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Dict, Optional, Tuple, Type

from .worker_errors import failure_to_bytes

_CHUNK = 1 << 16


class _Ends:
    """One end of each pipe."""

    def __init__(self, lifeline: Connection, report: Connection, crash: Connection) -> None:
        self._lifeline, self._report, self.crash = lifeline, report, crash

    def close(self) -> None:
        """Closes the pipes; the starter's end of the lifeline kills a worker that still lives."""
        for each in (self._lifeline, self._report, self.crash):
            each.close()


class StarterEnds(_Ends):
    """What the process keeps that has started the worker. Nothing here waits for the worker's
    cooperation: reading takes what is there.
    """

    def __init__(self, lifeline: Connection, report: Connection, crash: Connection) -> None:
        super().__init__(lifeline, report, crash)
        self._reported = self._crash_text = b""
        self._lock = threading.Lock()
        for each in (report, crash):
            os.set_blocking(each.fileno(), False)

    def report(self) -> bytes:
        """All that the worker has reported so far."""
        with self._lock:
            self._reported += _read(self._report)
            return self._reported

    def begun(self) -> bool:
        """Whether the worker has started its work."""
        with self._lock:
            self._crash_text += _read(self.crash)
            return self._crash_text != b""

    def crash_text(self) -> str:
        """What `faulthandler` wrote when the worker crashed; empty if it did not."""
        with self._lock:
            self._crash_text += _read(self.crash)
            _, fatal, text = self._crash_text.partition(b"Fatal Python error")
            return (fatal + text).decode("utf-8", "replace").strip()


class WorkerEnds(_Ends):
    """What the worker gets; it travels to it inside of the process object.

    Where it travels by pickle, it is in the worker before all else, and reports an exception that
    ends the worker before that has arrived as well.
    """

    def arrived(self) -> None:
        """Everything is in the worker: from now on `Worker.run` reports exceptions."""
        if getattr(sys.excepthook, "__self__", None) is self:
            sys.excepthook = sys.__excepthook__

    def die_with_starter(self) -> None:
        """From now on, the process is killed when the one that started it is gone.

        By the kernel where it can do that (Linux), so that also a worker dies that is stopped or
        hangs in C; elsewhere by a thread.
        """
        if not hasattr(fcntl, "F_SETSIG"):
            threading.Thread(target=self._die_at_the_end, name="Lifeline", daemon=True).start()
            return
        fd = self._lifeline.fileno()
        fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)  # type: ignore[attr-defined]
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        if self._lifeline.poll():  # gone already
            os.kill(os.getpid(), signal.SIGKILL)

    def _die_at_the_end(self) -> None:
        wait([self._lifeline])
        os.kill(os.getpid(), signal.SIGKILL)

    def begin(self) -> None:
        """Tells the other side that the worker has started its work."""
        # A full pipe must not hold up what writes in a signal handler.
        os.set_blocking(self.crash.fileno(), False)
        os.write(self.crash.fileno(), b"\n")

    def report(self, data: bytes) -> None:
        """Sends `data`, or as much of it as there is room for."""
        os.set_blocking(self._report.fileno(), False)
        os.write(self._report.fileno(), data)

    def _report_uncaught(
        self, kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        self.report(failure_to_bytes(error))

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        # This hook alone hears of an error in what multiprocessing unpickles next.
        sys.excepthook = self._report_uncaught


def connect() -> Tuple[StarterEnds, WorkerEnds]:
    """Makes the pipes; returns the two sides."""
    lifeline, lifeline_held = Pipe(duplex=False)
    report, report_written = Pipe(duplex=False)
    crash, crash_written = Pipe(duplex=False)
    ours = StarterEnds(lifeline_held, report, crash)
    return ours, WorkerEnds(lifeline, report_written, crash_written)


def _read(connection: Connection) -> bytes:
    """All that is there now."""
    data = b""
    with suppress(BlockingIOError):
        for new in iter(lambda: os.read(connection.fileno(), _CHUNK), b""):
            data += new
    return data
