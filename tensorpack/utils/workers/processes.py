"""Starts processes that ignore Ctrl-C, terminates them within a time limit, and joins them.

Ctrl-C reaches every process of the terminal's foreground group. Workers must not react to it: the
process that started them stops them in order.
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

from .. import logger

_PR_SET_PDEATHSIG = 1
_MAPS = "/proc/self/maps"
_OPENMP = re.compile(r"(/.*/lib(?:gomp|iomp5|omp)\b[^/\n]*)\n")
_LARGE_BLOCK = 31 << 20  # bytes; glibc learns from blocks of less than 32 MiB
_Processes = Union[BaseProcess, Sequence[BaseProcess]]


class ProcessGroup:
    """Owns processes of `multiprocessing`; leaving its `with` block terminates and joins them.

    They are one or several, started or not. Only the process that made the group acts on it: in a
    forked copy `close` does nothing.
    """

    def __init__(self, processes: _Processes):
        self.processes = _as_list(processes)
        self._owner = os.getpid()

    def start(self) -> None:
        """Starts all processes with SIGINT masked, see `start_proc_mask_signal`."""
        start_proc_mask_signal(self.processes)

    def close(self, grace: float = 2.0) -> None:
        """Terminates all that are alive, and kills those that are there after `grace` seconds.

        May be called more than once.
        """
        if os.getpid() != self._owner:
            return
        started = [process for process in self.processes if process.pid is not None]
        for process in started:
            process.terminate()
        deadline = time.monotonic() + grace
        for process in started:
            process.join(max(0.0, deadline - time.monotonic()))
        for process in started:
            if process.is_alive():
                process.kill()
            process.join()

    def __enter__(self) -> "ProcessGroup":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def ensure_proc_terminate(proc: _Processes) -> ProcessGroup:
    """Ensures that one or several processes do not outlive this one; returns their group.

    Code that starts processes should end them by `close()` of the group or its `with` block. For a
    program that just ends, the processes become daemonic, which makes `multiprocessing` itself
    terminate them when the interpreter exits: so call this before they are started. As daemonic
    processes cannot have processes of their own, own those that do by a `ProcessGroup`. A parent
    that is killed terminates nothing: see `set_parent_death_signal` for the worker's side.
    """
    group = ProcessGroup(proc)
    for process in group.processes:
        if process.pid is None:
            process.daemon = True
        elif not process.daemon:
            logger.warning(
                f"{process.name} was started before ensure_proc_terminate(): it is terminated "
                "only if you close() the returned group.",
                stacklevel=2,
            )
    return group


@contextmanager
def mask_sigint() -> Iterator[bool]:
    """Ignores SIGINT inside the block; processes started there ignore it for good.

    Yields False outside the main thread, where Python cannot change handlers and nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield False
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield True
    finally:
        # None stands for a handler that was not installed by Python and cannot be put back.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def start_proc_mask_signal(proc: Any) -> None:
    """Starts a process or thread, or several, that do not hear SIGINT.

    A Ctrl-C that comes meanwhile is not lost: this process hears it at the end of the call.
    """
    with sigint_blocked():
        for process in _as_list(proc):
            process.start()


@contextmanager
def sigint_blocked(*others: int) -> Iterator[None]:
    """Within this block processes can be started as `start_proc_mask_signal` does it. They do not
    hear the `others` either, until they unblock them.
    """
    # multiprocessing's helper process is started now: when it starts, it unblocks SIGINT for us.
    # Before Python 3.8 it does not, and hears SIGINT itself until its imports are done.
    helper = "resource" if sys.version_info >= (3, 8) else "semaphore"
    with _blocked():
        importlib.import_module(f"multiprocessing.{helper}_tracker").ensure_running()
    # Blocked, not ignored: the children inherit that, while in this process the signal stays
    # pending, or goes to another thread, whose handler flag the main thread sees.
    with _blocked(*others):
        yield


@contextmanager
def _blocked(*others: int) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *others})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_parent_death_signal(signum: int = signal.SIGTERM, parent_pid: Optional[int] = None) -> bool:
    """Asks Linux to send this process a signal when its parent dies, even by SIGKILL.

    To be called in the child. The "parent" is the *thread* that started the child: start such
    children from a thread that lives as long as they do. With its process id `parent_pid`, taken
    there, the signal is sent now if it is gone already. Returns False where the system has no such
    thing.
    """
    if not sys.platform.startswith("linux"):
        return False
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
        return False
    if parent_pid is not None and os.getppid() != parent_pid:
        os.kill(os.getpid(), signum)
    return True


def use_one_openmp_thread() -> None:
    """Makes libraries calculate with one thread of OpenMP, as PyTorch's data loader does.

    To be called in a forked process: where its parent has used several, libgomp would wait for ever
    for those, which were not copied.
    """
    set_of_torch = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if set_of_torch is not None:  # it has numbers of its own, for MKL
        set_of_torch(1)
    try:
        with open(_MAPS, encoding="utf-8", errors="replace") as file:
            paths = set(_OPENMP.findall(file.read()))
    except OSError:  # not Linux
        return
    for path in paths:
        with suppress(OSError, AttributeError):  # another file has that name now, or it is a stub
            ctypes.CDLL(path, os.RTLD_NOLOAD).omp_set_num_threads(1)


def subproc_call(
    cmd: Union[str, Sequence[str]], timeout: Optional[float] = None
) -> Tuple[bytes, int]:
    """Runs a list of arguments, or a command line for the shell; returns its output and errors
    together, and its exit code.

    After `timeout` seconds it is killed, with the processes that it started, but for what has left
    its group. The code is 128 + n if signal n ended it, -1 if it was killed by the timeout, -2 if
    it could not be started (the output is then the reason).
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
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException as error:
        with suppress(ProcessLookupError), process:  # closes the pipe, which another may hold
            os.killpg(process.pid, signal.SIGKILL)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return error.output or b"", -1
    code = process.returncode
    return output, 128 - code if code < 0 else code


def _as_list(processes: Any) -> List[Any]:
    return [processes] if hasattr(processes, "start") else list(processes)


@functools.lru_cache(maxsize=None)
def keep_freed_memory() -> None:
    """Makes this process keep up to 62 MiB of freed memory for its next arrays.

    By default glibc gives freed memory back to the kernel as soon as it is more than twice the
    largest block that was ever freed. A process that makes one image after the other then gets
    the same pages from the kernel again and again, each filled with zeros.
    """
    np.empty(_LARGE_BLOCK, np.uint8)  # not touched, so it costs nothing


def usable_cores() -> int:
    """Returns how many processor cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
