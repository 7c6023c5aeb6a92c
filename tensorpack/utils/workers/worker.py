"""Worker processes that end with the process that started them, and report what ended them."""

import faulthandler
import os
import signal
import sys
import threading
import time
import weakref
from contextlib import suppress
from multiprocessing import Pipe, context, forkserver, util
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from .. import logger
from .._console import open_standard_descriptors
from .processes import sigint_blocked, use_one_openmp_thread
from .worker_errors import LEFT, WorkerDied, WorkerTraceback, failure_from_bytes, failure_to_bytes
from .worker_pipes import StarterEnds, WorkerEnds, connect

_TOO_LONG = "AF_UNIX path too long"  # what Python says of a socket; it gives no number with it
# The end of a process is visible a little before its exit code.
_REAP_SECONDS = 0.5
_REAP_POLL_SECONDS = 0.005
_WITH_CALLBACKS = (util.__file__, weakref.__file__, weakref.WeakSet.add.__code__.co_filename)
_STATES = {
    "R": "running",
    "S": "waiting",
    "I": "waiting",
    "D": "waiting for a device, in the kernel",
    "T": "stopped by a signal",
    "t": "stopped by a debugger",
    "Z": "dead",
}


class Worker(BaseProcess):
    """A process of `multiprocessing` that takes part in a run; made by `make_worker`.

    * It is killed as soon as the process that started it is gone, even by SIGKILL, and also while
      it hangs in C or is stopped.
    * It ignores SIGINT and SIGHUP: the process that started it decides. SIGTERM ends it in order:
      SystemExit with code 143 is raised in its main thread.
    * An exception that ends it is not printed but handed over, see `error`.

    End it by `ProcessGroup`, `StartProcOrThread`, or `terminate` and `join`.
    """

    endless = False
    _is_forked = False  # from this process itself
    _held_back: Tuple[int, ...] = ()  # signals that wait until it has handlers of its own
    _starter: Optional[StarterEnds] = None
    _ends: Optional[WorkerEnds] = None

    def start(self) -> None:
        """Starts the process, once.

        Raises:
          OSError: the system has no room for it; or "forkserver" cannot make its socket, because
            the folder for temporary files has too long a path.
        """
        if self._starter is not None:
            raise RuntimeError(f"{self.name} was started before: make a new worker.")
        open_standard_descriptors()
        self._starter, self._ends = connect()
        # Held by another child as well, the lifeline would not end with this process.
        util.register_after_fork(self._starter, StarterEnds.close)
        try:
            try:
                self._start()
            except ChildProcessError:
                _leave_helpers_to_parent()
                self._start()
        except OSError as error:
            if _TOO_LONG not in str(error):
                raise
            raise OSError(
                f"{self.name} cannot be started: a socket in {util.get_temp_dir()} would have a "
                "path of more than 107 bytes. Set TMPDIR to a folder with a shorter path."
            ) from error
        finally:
            self._ends.close()

    def _start(self) -> None:
        with sigint_blocked(*self._held_back):
            super().start()

    def terminate(self) -> None:
        """Asks the process to end, by SIGTERM; one that is stopped is woken to hear it."""
        super().terminate()
        if self.is_alive():
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.kill(self.pid or 0, signal.SIGCONT)

    def error(self) -> Optional[Exception]:
        """Returns the exception that ended it, or a `WorkerFailed` unless that was a builtin one,
        with the worker's traceback as the cause; or a `WorkerDied`, with what is known as the cause
        if it could not even begin, or called `sys.exit`. None if it runs or ended in order.
        """
        exitcode = self.exitcode
        if exitcode is None or self._starter is None or (exitcode == 0 and not self.endless):
            return None
        pid = self.pid or 0
        failure = failure_from_bytes(self._starter.report(), self.name, pid)
        begun = self._is_forked or self._starter.begun()
        if begun and failure is not None and not isinstance(failure, WorkerTraceback):
            return failure
        died = WorkerDied(self.name, pid, exitcode, self._starter.crash_text(), begun)
        died.__cause__ = failure
        return died

    def run(self) -> None:
        """What happens in the process; called by `multiprocessing`."""
        if self._ends is None:
            raise RuntimeError("A Worker runs in a process of its own: call start(), not run().")
        _set_signals(self._held_back)
        self._ends.die_with_starter()
        self._ends.arrived()
        self._ends.begin()
        faulthandler.enable(file=self._ends.crash, all_threads=True)
        if self._is_forked:
            use_one_openmp_thread()
        try:
            super().run()
        except SystemExit as error:
            if error.code != LEFT:  # nothing told it to leave, so the place is news
                self._ends.report(failure_to_bytes(error))
            raise
        except BaseException as error:
            self._ends.report(failure_to_bytes(error))
            raise SystemExit(1) from None
        finally:
            # What follows is the interpreter's own end, where an exception would only be printed.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def __getstate__(self) -> Dict[str, Any]:
        # the ends first, to report that something after them cannot be unpickled
        return {"_ends": self._ends, **self.__dict__, "_starter": None}


class _SpawnWorker(Worker, context.SpawnProcess):
    """Starts in a new interpreter."""


class _ForkWorker(Worker, context.ForkProcess):
    """Starts as a copy of this process.

    With the handlers of this process, too: what one of them did there would be news for this
    process, by its wake-up descriptor, and the worker would not have heard it.
    """

    _is_forked = True
    _held_back = (signal.SIGTERM, signal.SIGHUP)


class _ForkServerWorker(Worker, context.ForkServerProcess):
    """Starts as a copy of a small server process."""


def make_worker(
    target: Callable[..., Any],
    args: Sequence[Any] = (),
    *,
    name: str,
    method: str,
    daemon: bool = True,
    endless: bool = False,
) -> Worker:
    """Makes a worker process that is not started yet.

    Args:
      target, args: what it calls; picklable unless `method` is "fork".
      name: its name in messages.
      method: how it is started. "spawn" is slow and always safe; "fork" is safe only while this
        process has one thread, so before TensorFlow is used; "forkserver" is in between, but leaves
        the server's socket in the temporary directory if this process is killed.
      daemon: whether `multiprocessing` ends it when this interpreter exits. If so, it cannot have
        processes of its own.
      endless: whether it is an error if it ends, even in order.
    """
    kinds = {"spawn": _SpawnWorker, "fork": _ForkWorker, "forkserver": _ForkServerWorker}
    if method not in kinds:
        raise ValueError(f"The start method must be one of {', '.join(kinds)}, got {method!r}.")
    worker: Worker = kinds[method](target=target, args=tuple(args), name=name, daemon=daemon)
    worker.endless = endless
    return worker


class WorkerWatch:
    """A thread that sleeps until one of some processes ends.

    Args:
      processes: any of `multiprocessing`, started; not to be closed before `close`.
      on_end: called on the thread with a process that ended wrongly and an exception that says how,
        see `error_of`.
    """

    def __init__(
        self, processes: Sequence[BaseProcess], on_end: Callable[[BaseProcess, Exception], Any]
    ) -> None:
        self._watched: Dict[Any, BaseProcess] = {each.sentinel: each for each in processes}
        self._on_end = on_end
        self._closing, self._closer = Pipe(duplex=False)
        self._thread = threading.Thread(target=self._run, name="WorkerWatch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread after a last look; the processes continue. May be called again."""
        if self._closer.closed:
            return
        self._closer.send_bytes(b".")  # its end alone is not seen while a forked process holds it
        self._thread.join()
        self._closer.close()
        self._closing.close()

    def _run(self) -> None:
        closing = False
        while not closing:
            closing = self._closing in wait([self._closing, *self._watched])
            for ready in wait(list(self._watched), 0):
                self._report(self._watched.pop(ready))

    def _report(self, process: BaseProcess) -> None:
        deadline = time.monotonic() + _REAP_SECONDS
        while process.exitcode is None and time.monotonic() < deadline:
            time.sleep(_REAP_POLL_SECONDS)
        if process.exitcode is None:
            logger.warning(f"{process.name} closed its descriptors and is no longer watched.")
            return
        error = error_of(process)
        try:
            if error is not None:
                self._on_end(process, error)
        except Exception:  # the other processes must still be watched
            logger.exception(f"Could not report that {process.name} ended.")


def error_of(process: BaseProcess) -> Optional[Exception]:
    """Returns an exception that says how a process of `multiprocessing` ended; None if it runs or
    ended in order.
    """
    if isinstance(process, Worker):
        return process.error()
    exitcode = process.exitcode
    return WorkerDied(process.name, process.pid or 0, exitcode) if exitcode else None


def described(process: BaseProcess) -> str:
    """Returns the name, the number and the state of a process of `multiprocessing`."""
    return f"{process.name} (pid {process.pid}): {state_of(process.pid)}"


def state_of(pid: Optional[int]) -> str:
    """Returns the kernel's state of a process in words; "unknown" without /proc."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            letter = file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "unknown"
    return _STATES.get(letter, f"in state {letter}")


def _leave_helpers_to_parent() -> None:
    """Lets `multiprocessing` start helper processes of its own in a process made by `os.fork`.

    It would wait for those of its parent, which are not its children.
    """
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if server._forkserver_pid is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_pid = None
    tracker = sys.modules.get("multiprocessing.semaphore_tracker")  # of Python 3.7
    if tracker is not None:
        tracker._semaphore_tracker._pid = None


def _set_signals(held_back: Tuple[int, ...]) -> None:
    # A forked process has the handlers of its parent, and would write into its wake-up descriptor.
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    if held_back:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held_back)


def _leave(signum: int, frame: Any) -> None:
    # once: what cleans up while this unwinds must not be hit again
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not _drops_exceptions(frame):
        raise SystemExit(LEFT)
    signal.signal(signal.SIGALRM, _leave)
    signal.setitimer(signal.ITIMER_REAL, 0.001)


def _drops_exceptions(frame: Any) -> bool:
    """Whether an exception raised in `frame` may be printed and dropped, so that it ends nothing:
    in a finalizer, or a callback of a weak reference, as the import system has them, too.
    """
    if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
        return True  # but not above a module that is imported, which may be all that a program is
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _WITH_CALLBACKS:
            return True
        frame = frame.f_back
    return False
