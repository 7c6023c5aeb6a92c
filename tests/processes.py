"""Waits, and looks at processes, threads, open files and shared memory, without TensorFlow."""

import os
import subprocess
import sys
import threading
import time

import pytest

from tensorpack.utils.workers.worker import state_of
from tests.checks import ROOT

LONG = 30  # seconds; waited for in full only if the code is wrong
SOON = 2  # seconds; for what is to happen within one


def gone(pid):
    """True if there is no process of this id, or one that is only to be reaped."""
    return state_of(pid) in ("unknown", "zombie")


def wait_until(condition, seconds=LONG):
    """Waits until a condition holds, which it must within so many seconds; returns True."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
    return True


def in_thread(function, *args):
    """Runs a function in a thread; returns the thread and a list for what it raises."""
    errors = []

    def run():
        try:
            function(*args)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def in_fork(function):
    """Calls a function in a copy of this process; returns whether it came back."""
    pid = os.fork()
    if not pid:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def open_files():
    """What this process has open."""
    return sorted(os.listdir("/proc/self/fd"))


def open_paths():
    """The paths of the files that this process has open."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the system does not tell which files are open")
    links = [os.path.join("/proc/self/fd", name) for name in open_files()]
    return [os.readlink(link) for link in links if os.path.islink(link)]


def named_memory():
    """What of ours has a name in shared memory; things of other programs come and go there."""
    return sorted(name for name in os.listdir("/dev/shm") if name.startswith("tensorpack"))


def run_python(*args, env=None, **options):
    """Runs Python on this source until it ends; returns what `subprocess.run` does."""
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        timeout=120,
        **options,
    )
