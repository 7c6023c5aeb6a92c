"""What the workers of the tests do."""

import ctypes
import importlib
import itertools
import os
import signal
import time
import weakref
from multiprocessing import util


class Unloadable:
    """Can be pickled, and not come back."""

    def __reduce__(self):
        return refuse, ()


def refuse():
    raise LookupError("not here")


def nothing(*args):
    pass


def sleep(ready=None):
    if ready is not None:
        ready.set()
    while True:  # a signal that comes just before the system call is handled only after it
        time.sleep(0.05)


def hang_in_c(ready):
    """Never comes back, and no other thread of the process runs any more."""
    ready.set()
    sum(itertools.repeat(1))


def stop(ready):
    ready.set()
    os.kill(os.getpid(), signal.SIGSTOP)


def take_import_locks(ready):
    """Is nearly always in `importlib`, where a callback drops each lock."""
    ready.set()
    for i in itertools.count():
        importlib._bootstrap._get_module_lock(f"module{i}")


def drop(ready, kind):
    """Is told to leave where Python prints what is raised and drops it."""

    class Kept:
        def __del__(self):
            if kind == "__del__":
                wait()

    def wait():
        ready.set()
        time.sleep(0.2)

    kept = Kept()
    if kind == "finalize":
        weakref.finalize(kept, wait)
    elif kind == "Finalize":
        util.Finalize(kept, wait)
    del kept
    sleep()


def fail():
    raise LookupError("no such datapoint")


def clean_up(ready, path):
    """Writes into a file when it is told to leave."""
    try:
        sleep(ready)
    finally:
        with open(path, "w") as file:
            file.write("cleaned up")


def hear(*signums):
    for signum in signums:
        os.kill(os.getpid(), signum)
    time.sleep(0.1)


def calculate(library):
    """Calls a function in all threads of a parallel region of OpenMP."""
    ctypes.CDLL(library).GOMP_parallel(ctypes.CDLL(None).getpid, None, 0, 0)


def end_slowly():
    """Is told to leave when the work is over and the process is not."""
    util.Finalize(None, hear, (signal.SIGTERM,), exitpriority=0)
