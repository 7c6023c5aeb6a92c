"""Small parts that several tests of flows need."""

import os
import threading
import time

import numpy as np

from tensorpack.utils.worker import state_of

LONG = 30  # seconds; waited for in full only if the code is wrong
SOON = 2  # seconds; for what is to happen within one


def gone(pid):
    """True if there is no process of this id, or one that is only to be reaped."""
    return state_of(pid) in ("unknown", "dead")


def wait_until(condition, seconds=LONG):
    """Waits until a condition holds; returns whether it does."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


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


def stays_as_it_is(array):
    """The rule by which `input_source.aliasing` takes an array without a copy."""
    memory = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    if isinstance(memory, memoryview):
        return memory.readonly
    return memory is None or isinstance(memory, bytes)


def open_files():
    """What this process has open."""
    return sorted(os.listdir("/proc/self/fd"))


def named_memory():
    """What of ours has a name in shared memory; things of other programs come and go there."""
    return sorted(name for name in os.listdir("/dev/shm") if name.startswith("tensorpack"))
