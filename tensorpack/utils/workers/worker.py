"""Worker processes that end with the process that started them, and report what ended them.

A pipe joins a worker and the process that started it. It carries a first byte, which says that the
worker has begun, and then the exception that ended it, or what `faulthandler` wrote. When it has no
reader left, the other process is gone.
"""

import faulthandler
import fcntl
import os
import pickle
import re
import signal
import sys
import threading
import time
import traceback
import weakref
from contextlib import suppress
from multiprocessing import Pipe, forkserver, get_context, util
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable, Dict, Optional, Sequence

from .._console import open_standard_descriptors
from .processes import sigint_blocked, use_one_openmp_thread
from .worker_errors import LEFT, WorkerDied, WorkerTraceback, failure_from_bytes, failure_to_bytes

_BEGUN = b"\n"
_PIPE_BYTES = 1 << 20  # more than a pipe holds
_HELD_BACK = (signal.SIGTERM, signal.SIGHUP)
_IMPORTS = "<frozen importlib._bootstrap>"
_WITH_CALLBACKS = (util.__file__, weakref.__file__, weakref.WeakSet.add.__code__.co_filename)
_STATE = re.compile(r"^State:\s+\w \((.*)\)$", re.MULTILINE)


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
    _start_method = ""
    _work = b""  # the target and its arguments, until they are unpickled
    _report: Connection  # of the worker
    _reader: Optional[Connection] = None  # of the process that started it
    _reported = b""
    _popen: Any

    def start(self) -> None:
        """Starts the process, once.

        Raises:
          OSError: the system has no room for it; or "forkserver" cannot make its socket, because
            the folder for temporary files has too long a path.
        """
        open_standard_descriptors()
        self._reader, self._report = Pipe(duplex=False)
        # Held by another child as well, it would not end with this process.
        util.register_after_fork(self._reader, Connection.close)
        for end in (self._reader, self._report):
            os.set_blocking(end.fileno(), False)
        try:
            self._start()
        except ChildProcessError:  # of a process made by os.fork: it waits for its parent's helpers
            forkserver._forkserver._forkserver_pid = None  # type: ignore[attr-defined]
            tracker = sys.modules.get("multiprocessing.semaphore_tracker")  # of Python 3.7
            if tracker is not None:
                tracker._semaphore_tracker._pid = None
            self._start()
        except OSError as error:
            if "AF_UNIX path too long" not in str(error):  # Python gives no number with it
                raise
            where = f"the path of {util.get_temp_dir()} is too long for a socket"
            raise OSError(f"{self.name} cannot be started: {where}. Set TMPDIR.") from error
        finally:
            self._report.close()

    def _start(self) -> None:
        # A forked one has the handlers of this process, too: what they did there would be news for
        # this one, by its wake-up descriptor, and the worker would not have heard it.
        with sigint_blocked(*(_HELD_BACK if self._start_method == "fork" else ())):
            super().start()

    def _Popen(self, process: BaseProcess) -> Any:
        context: Any = get_context(self._start_method)
        return context.Process._Popen(process)

    def terminate(self) -> None:
        """Asks the process to end, by SIGTERM; one that is stopped is woken to hear it."""
        super().terminate()
        self._popen._send_signal(signal.SIGCONT)

    def error(self) -> Optional[Exception]:
        """Returns the exception that ended it, or a `WorkerFailed` if that cannot be pickled, with
        the worker's traceback as the cause; or a `WorkerDied`, with what is known as the cause if
        it could not even begin, or called `sys.exit`. None if it runs or ended in order.
        """
        exitcode, reader = self.exitcode, self._reader
        if exitcode is None or reader is None or (exitcode == 0 and not self.endless):
            return None
        with suppress(BlockingIOError):  # another process may hold the other end
            self._reported += os.read(reader.fileno(), _PIPE_BYTES)
        begun, told = self._reported.startswith(_BEGUN), self._reported.lstrip(_BEGUN)
        failure, pid = None, self.pid or 0
        if told.startswith(pickle.PROTO):
            with suppress(EOFError, pickle.UnpicklingError):  # there was room for a part of it
                failure = failure_from_bytes(told, self.name, pid)
        if begun and failure is not None and not isinstance(failure, WorkerTraceback):
            return failure
        crash = "" if failure else told.decode("utf-8", "replace").strip()
        died = WorkerDied(self.name, pid, exitcode, crash, begun)
        died.__cause__ = failure
        return died

    def run(self) -> None:
        """What happens in the process; called by `multiprocessing`."""
        self._die_with_starter()
        try:
            if self._work:
                self._target, self._args, self._kwargs = pickle.loads(self._work)
                self._work = b""
            # A forked one would write into the wake-up descriptor of its parent.
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, _leave)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
            os.write(self._report.fileno(), _BEGUN)
            faulthandler.enable(file=self._report, all_threads=True)
            if self._start_method == "fork":
                use_one_openmp_thread()
            super().run()
        except BaseException as error:
            code = error.code if isinstance(error, SystemExit) else 1
            if code != LEFT:  # nothing told it to leave, so the place is news
                os.write(self._report.fileno(), failure_to_bytes(error))
            raise SystemExit(code) from None
        finally:
            # What follows is the interpreter's own end, where an exception would only be printed.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _die_with_starter(self) -> None:
        """From now on, the process is killed when the one that started it is gone: by the kernel on
        Linux, so that also a worker dies that is stopped or hangs in C; elsewhere by a thread.
        """
        if not hasattr(fcntl, "F_SETSIG"):
            threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
            return
        fd = self._report.fileno()
        fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)  # type: ignore[attr-defined]
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        if wait([self._report], 0):  # gone already
            os.kill(os.getpid(), signal.SIGKILL)

    def __getstate__(self) -> Dict[str, Any]:
        # The work as bytes, so that `run` can report that it cannot be unpickled.
        state = {**self.__dict__, "_reader": None}
        work = [state.pop(name) for name in ("_target", "_args", "_kwargs")]
        return {**state, "_work": bytes(ForkingPickler.dumps(work))}


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
    worker = Worker(target=target, args=args, name=name, daemon=daemon)
    worker._start_method, worker.endless = method, endless
    return worker


def described(process: BaseProcess) -> str:
    """Returns the name, the number and the state of a process of `multiprocessing`."""
    return f"{process.name} (pid {process.pid}): {state_of(process.pid)}"


def state_of(pid: Optional[int]) -> str:
    """Returns the kernel's word for the state of a process or thread, such as "sleeping", "stopped"
    or "zombie"; "unknown" if there is none, or no /proc.
    """
    with suppress(OSError), open(f"/proc/{pid}/status", errors="replace") as file:
        return _STATE.findall(file.read())[0]
    return "unknown"


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(signum: int, frame: Any) -> None:
    # once: what cleans up while this unwinds must not be hit again
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # An exception may be printed and dropped, so that it ends nothing, in a finalizer or a callback
    # of a weak reference, as the import system has them, too; but not above a module that is being
    # imported, which may be all that a program is.
    if frame.f_code.co_filename != _IMPORTS and not any(
        above.f_code.co_name == "__del__" or above.f_code.co_filename in _WITH_CALLBACKS
        for above, _ in traceback.walk_stack(frame)
    ):
        raise SystemExit(LEFT)
    signal.signal(signal.SIGALRM, _leave)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
