"""Starts processes that ignore Ctrl-C, terminates them within a time limit, and joins them.

Ctrl-C reaches every process of a terminal. The one that started the workers stops them in order.
"""

import ctypes
import functools
import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

_PR_SET_PDEATHSIG = 1
_OPENMP = re.compile(r"(/.*/lib(?:gomp|iomp5|omp)\b[^/\n]*)\n")
_Processes = Union[BaseProcess, Sequence[BaseProcess]]


class ProcessGroup:
    """One or several processes, started or not; leaving the `with` block ends and joins them."""

    def __init__(self, processes: _Processes):
        self.processes = _as_list(processes)

    def close(self, grace: float = 2.0) -> None:
        """Terminates all that are alive, and kills those that are there after `grace` seconds."""
        started = [process for process in self.processes if process.pid is not None]
        for process in started:
            process.terminate()
        deadline = time.monotonic() + grace
        for process in started:
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.join()

    def __enter__(self) -> "ProcessGroup":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def ensure_proc_terminate(proc: _Processes) -> ProcessGroup:
    """Makes one or several processes daemonic; returns their group, whose `close` ends them.

    `multiprocessing` terminates them at the latest when the interpreter exits, and they cannot have
    processes of their own. A parent that is killed terminates nothing: see `enable_death_signal`.
    """
    group = ProcessGroup(proc)
    for process in group.processes:
        process._config["daemon"] = True  # `daemon` cannot be set when it has been started
    return group


@contextmanager
def mask_sigint() -> Iterator[bool]:
    """Ignores SIGINT inside the block; processes started there ignore it for good. Yields False
    outside the main thread, where Python cannot change handlers and nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield False
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)  # None: Python cannot put it back


def start_proc_mask_signal(proc: Any) -> None:
    """Starts one or several processes or threads that do not hear SIGINT. A Ctrl-C meanwhile is not
    lost: this process hears it at the end of the call.
    """
    with sigint_blocked():
        for process in _as_list(proc):
            process.start()


@contextmanager
def sigint_blocked(*others: int) -> Iterator[None]:
    """Processes that are started in this block do not hear SIGINT and `others` until they unblock
    them; in this one, these signals wait for its end.
    """
    blocked = {signal.SIGINT, *others}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        # multiprocessing's helper process unblocks SIGINT for us when it starts, so it does now.
        helper = "resource" if sys.version_info >= (3, 8) else "semaphore"
        importlib.import_module(f"multiprocessing.{helper}_tracker").ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_parent_death_signal(signum: int = signal.SIGTERM, parent_pid: Optional[int] = None) -> bool:
    """Asks Linux to send this process, a child, a signal when its parent dies, even by SIGKILL.

    The "parent" is the *thread* that started the child: start such children from a thread that
    lives as long as they do. If it is not `parent_pid` any more, the signal is sent now. Returns
    False on other systems.
    """
    if not sys.platform.startswith("linux"):
        return False
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    if parent_pid not in (None, os.getppid()):
        os.kill(os.getpid(), signum)
    return True


def use_one_openmp_thread() -> None:
    """Makes libraries calculate with one thread of OpenMP: in a forked process, libgomp would wait
    for ever for the threads of the parent, which were not copied.
    """
    with suppress(KeyError, AttributeError):  # not imported, or not all of it
        sys.modules["torch"].set_num_threads(1)  # it has numbers of its own, for MKL
    with suppress(OSError), open("/proc/self/maps", errors="replace") as file:  # if this is Linux
        for path in set(_OPENMP.findall(file.read())):
            with suppress(OSError, AttributeError):  # another file has its name now; it is a stub
                ctypes.CDLL(path, os.RTLD_NOLOAD).omp_set_num_threads(1)


def subproc_call(
    cmd: Union[str, Sequence[str]], timeout: Optional[float] = None
) -> Tuple[bytes, int]:
    """Runs a list of arguments, or a command line for the shell; returns output and errors
    together, and its exit code: 128 + n if signal n ended it, -2 if it could not be started (the
    output is then the reason), -1 if it was killed after `timeout` seconds, with its whole group.
    """
    try:
        process = subprocess.Popen(
            cmd,
            shell=isinstance(cmd, str),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return str(error).encode(), -2
    with process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return error.output or b"", -1
    return output, process.returncode if process.returncode >= 0 else 128 - process.returncode


def _as_list(processes: Any) -> List[Any]:
    return [processes] if hasattr(processes, "start") else list(processes)


@functools.lru_cache(maxsize=None)
def keep_freed_memory() -> None:
    """Makes glibc keep up to 62 MiB of freed memory for the next arrays.

    By default it returns what is more than twice the largest block that was ever freed, and a
    process that makes one image after the other gets it back each time, filled with zeros.
    """
    # glibc learns from blocks of less than 32 MiB; not touched, it costs nothing
    np.empty(31 << 20, np.uint8)


def usable_cores() -> int:
    """Returns how many processor cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1
