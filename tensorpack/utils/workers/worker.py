"""Worker processes that end with the process that started them, and report what ended them.

A pipe joins the two. It carries the exception that ended the worker, or what `faulthandler` wrote.
When it has no reader left, the process that started the worker is gone.
"""

import faulthandler
import fcntl
import os
import pickle
import re
import signal
import sys
import traceback
import weakref
from contextlib import suppress
from multiprocessing import Pipe, forkserver, get_context, util
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, Dict, Optional, Sequence

from .processes import sigint_blocked, use_one_openmp_thread
from .worker_errors import LEFT, WorkerDied, failure_from_bytes, failure_to_bytes

_BLOCKED = (signal.SIGTERM, signal.SIGHUP)
_WITH_CALLBACKS = (util.__file__, weakref.__file__, weakref.WeakSet.add.__code__.co_filename)
_STATE = re.compile(r"^State:\s+\w \((.*)\)$", re.MULTILINE)


class Worker(BaseProcess):
    """A process of `multiprocessing` that takes part in a run.

    * It is killed as soon as the process that started it is gone, even by SIGKILL, and also while
      it hangs in C or is stopped.
    * It ignores SIGINT and SIGHUP. SIGTERM raises SystemExit with code 143 in its main thread.
    * An exception that ends it is not printed but handed over, see `error`.

    It is daemonic, so it cannot have processes of its own. End it by `ProcessGroup`,
    `StartProcOrThread`, or `terminate` and `join`.

    Args:
      target, args: what it calls; picklable unless `method` is "fork".
      name: its name in messages.
      method: how it is started. "spawn" is slow and always safe; "fork" is safe only while this
        process has one thread, so before TensorFlow is used; "forkserver" is in between, but leaves
        the server's socket in the temporary directory if this process is killed.
      endless: whether it is an error if it ends, even in order.
    """

    _popen: Any

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        *,
        name: str,
        method: str,
        endless: bool = False,
    ) -> None:
        super().__init__(target=target, args=tuple(args), name=name, daemon=True)
        self._start_method, self._endless = method, endless
        self._work = b""  # the target and its arguments, until they are unpickled
        self._reader: Optional[Connection] = None
        self._report = b""

    def start(self) -> None:
        """Starts the process, once; an OSError if the system has no room for it."""
        self._reader, self._writer = Pipe(duplex=False)
        # Held by another child as well, it would not end with this process.
        util.register_after_fork(self._reader, Connection.close)
        for end in (self._reader, self._writer):
            os.set_blocking(end.fileno(), False)
        try:
            self._start()
        except ChildProcessError:  # in a process of os.fork: the helpers are those of its parent
            forkserver._forkserver._forkserver_pid = None  # type: ignore[attr-defined]
            tracker = sys.modules.get("multiprocessing.semaphore_tracker")  # of Python 3.7
            if tracker is not None:
                tracker._semaphore_tracker._pid = None
            self._start()
        finally:
            self._writer.close()

    def _start(self) -> None:
        # What a forked one does in the handlers of this process, before it has its own, would be
        # heard here, by the wake-up descriptor, and not there.
        with sigint_blocked(*(_BLOCKED if self._start_method == "fork" else ())):
            super().start()

    def _Popen(self, process: BaseProcess) -> Any:
        context: Any = get_context(self._start_method)
        return context.Process._Popen(process)

    def terminate(self) -> None:
        """Asks the process to end, by SIGTERM; one that is stopped is woken to hear it."""
        super().terminate()
        self._popen._send_signal(signal.SIGCONT)

    def error(self) -> Optional[Exception]:
        """Returns the exception that ended it, or a `WorkerFailed` if that cannot be raised here,
        with the worker's traceback as the cause; a `WorkerDied` if it reported none. None if it
        runs or ended in order.
        """
        exitcode, reader = self.exitcode, self._reader
        if exitcode is None or reader is None or (exitcode == 0 and not self._endless):
            return None
        with suppress(BlockingIOError):  # another process may hold the other end
            self._report += os.read(reader.fileno(), 1 << 20)  # more than a pipe holds
        pid = self.pid or 0
        if self._report.startswith(pickle.PROTO):
            with suppress(EOFError, pickle.UnpicklingError):  # there was room for a part of it
                return failure_from_bytes(self._report, self.name, pid)
        # An exception is reported, unless the script could not be imported.
        begun = exitcode != 1 or self._start_method == "fork"
        return WorkerDied(self.name, pid, exitcode, self._report.decode("utf-8", "replace"), begun)

    def run(self) -> None:
        """What happens in the process; called by `multiprocessing`."""
        self._die_with_parent()
        try:
            if self._work:
                self._target, self._args, self._kwargs = pickle.loads(self._work)
                self._work = b""
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, _exit_on_sigterm)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)
            faulthandler.enable(file=self._writer, all_threads=True)
            if self._start_method == "fork":
                use_one_openmp_thread()
            super().run()
        except BaseException as error:
            code = error.code if isinstance(error, SystemExit) else 1
            if code != LEFT:  # it was not asked to leave
                os.write(self._writer.fileno(), failure_to_bytes(error))
            raise SystemExit(code) from None
        finally:
            # What follows is the interpreter's own end, where an exception would only be printed.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _die_with_parent(self) -> None:
        """From now on, Linux kills the process when the one that started it is gone, also while it
        is stopped or hangs in C.
        """
        if hasattr(fcntl, "F_SETSIG"):
            fd = self._writer.fileno()
            fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        if wait([self._writer], 0):  # gone already
            os.kill(os.getpid(), signal.SIGKILL)

    def __getstate__(self) -> Dict[str, Any]:
        # The work as bytes, so that `run` can report that it cannot be unpickled.
        state = {**self.__dict__, "_reader": None}
        work = [state.pop(name) for name in ("_target", "_args", "_kwargs")]
        return {**state, "_work": bytes(ForkingPickler.dumps(work))}


def described(process: BaseProcess) -> str:
    """Returns the name, the number and the state of a process of `multiprocessing`."""
    return f"{process.name} (pid {process.pid}): {state_of(process.pid)}"


def state_of(pid: Optional[int]) -> str:
    """Returns the kernel's word for the state of a process or thread, "unknown" if it has none."""
    with suppress(OSError), open(f"/proc/{pid}/status", errors="replace") as file:
        return _STATE.findall(file.read())[0]
    return "unknown"


def _exit_on_sigterm(signum: int, frame: Any) -> None:
    # once: what cleans up while this unwinds must not be hit again
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # What is raised in a finalizer or in a callback of a weak reference, as the import system has
    # them, is printed and dropped. Above a module that is being imported it is not.
    if frame.f_code.co_filename != "<frozen importlib._bootstrap>" and not any(
        outer.f_code.co_name == "__del__" or outer.f_code.co_filename in _WITH_CALLBACKS
        for outer, _ in traceback.walk_stack(frame)
    ):
        raise SystemExit(LEFT)
    signal.signal(signal.SIGALRM, _exit_on_sigterm)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
