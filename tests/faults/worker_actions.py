"""What the workers of `cases_workers.py` do; TensorFlow is not loaded for them."""

import ctypes
import os
import signal
import time

from .marks import mark

__all__ = [
    "crash",
    "fail",
    "hang",
    "kill",
    "stop",
    "work",
]


def work():
    """Stays until it is told to leave."""
    mark("working")
    while True:
        time.sleep(0.1)


def _dying():
    time.sleep(0.5)  # the step is well under way
    mark(f"dying {time.monotonic()}")


def kill():
    _dying()
    os.kill(os.getpid(), signal.SIGKILL)


def crash():
    _dying()
    ctypes.string_at(0)


def fail():
    _dying()
    raise LookupError("the worker is broken")


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def hang():
    """Waits in C for what does not come; nothing else of the process runs any more."""
    while True:
        ctypes.PyDLL(None).pause()
