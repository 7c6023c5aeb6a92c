"""Threads that make datapoints, and the bounded buffer between them and the consumer.

`concurrent.futures` does not serve here: its queue has no bound, and the interpreter joins its
threads at exit, so a function that never returns would keep the program alive.
"""

import itertools
import queue
import sys
import threading
import time
import traceback
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from tensorpack.utils import logger

from ..base import DataFlowTerminated

BUFFER_BYTES = 256 * 2**20  # default limit of the memory of waiting datapoints

_GRACE_SECONDS = 2.0
# How many elements of a list are measured: of the datapoint, of its components, of theirs.
_SAMPLES = (64, 16, 4)


class Buffer:
    """A first-in, first-out buffer that is bounded in items and in bytes.

    A thread reserves room **before** it makes a datapoint, so a finished datapoint never waits to
    get in; where order matters, nothing can block the next one. `max_bytes` is exceeded by at most
    one item and by those that threads are making. Several threads may use either end. `close` takes
    no lock, because garbage collection may call it in any thread at any point; items and room are
    kept in queues, so a wake-up cannot be lost.
    """

    def __init__(self, name: str, max_items: int, max_bytes: int) -> None:
        self.closed = False
        self._name, self._max_bytes = name, max_bytes
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(max_items):
            self._room.put(None)
        self._bytes = 0
        self._bytes_lock = threading.Lock()
        self.error: Optional[BaseException] = None  # the first that `fail` was called with

    def reserve(self) -> bool:
        """Waits for room for one more item; returns False if the buffer is closed."""
        spare = -1
        while True:
            self._room.get()
            spare += 1
            if self.closed:
                self._room.put(None)  # wakes the next thread that waits
                return False
            if self._bytes < self._max_bytes:
                break
            # Too many bytes: the next `release` brings room for one more, so wait for that.
        for _ in range(spare):
            self._room.put(None)
        return True

    def put(self, item: Any, nbytes: int) -> None:
        """Puts an item into its reserved room; never waits."""
        with self._bytes_lock:
            self._bytes += nbytes
        self._items.put((item, nbytes))

    def get(self) -> Tuple[Any, int]:
        """Waits for an item; returns it and its bytes, to be released, or raises as `check`."""
        item = self._items.get()
        if self.closed:
            self._items.put(item)  # wakes the next thread that waits
            self.check()
        return item

    def release(self, nbytes: int = 0) -> None:
        """Frees the room of an item that was taken, or that will never be put."""
        with self._bytes_lock:
            self._bytes -= nbytes
        self._room.put(None)

    def check(self) -> None:
        """Raises `error`, or DataFlowTerminated if the buffer is closed."""
        if self.error is not None:
            raise self.error
        if self.closed:
            raise DataFlowTerminated(
                f"{self._name} was closed or reset during this pass. If two inputs read it, make "
                "a flow for each of them; otherwise begin another pass."
            )

    def fail(self, error: BaseException) -> None:
        """Closes the buffer, and lets `get` raise an error at once; only the first error counts."""
        if not self.closed:
            self.error = error
        self.close()

    def close(self) -> None:
        """Ends all waits, now and later. Any thread may call it."""
        self.closed = True
        self._room.put(None)
        self._items.put((None, 0))


class ThreadPool:
    """Daemon threads that do the same work, and are joined together within a limited time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: List[threading.Thread] = []
        self._starting = threading.Lock()
        self._over = False
        self._left_behind: List[threading.Thread] = []

    def start(self, work: Callable[[int], None], num: int) -> None:
        """Starts threads that call `work` with their numbers, unless `join` was called before."""
        with self._starting:
            for number in range(0 if self._over else num):
                thread = threading.Thread(
                    target=work, args=(number,), name=f"{self._name}-{number}", daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def join(self) -> bool:
        """Waits for the threads, for at most the grace time; returns whether all have ended.

        A thread that has not ended is left behind, with a warning that shows its stack, and not
        waited for again. Returns False at once in one of the threads (garbage collection may call
        this there), and while the interpreter exits, when daemons no longer run.
        """
        if threading.current_thread() in self._threads or sys.is_finalizing():
            return False
        with self._starting:
            self._over = True
        deadline = time.monotonic() + _GRACE_SECONDS
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            if thread not in self._left_behind:
                thread.join(max(0.0, deadline - time.monotonic()))
        alive = [thread for thread in started if thread.is_alive()]
        for thread in alive:
            if thread not in self._left_behind:
                self._left_behind.append(thread)
                _warn_of(thread)
        return not alive


def _warn_of(thread: threading.Thread) -> None:
    frame = sys._current_frames().get(thread.ident or 0)
    stack = "".join(traceback.format_stack(frame)) if frame is not None else "(unknown)\n"
    logger.warning(
        f"{thread.name} did not stop within {_GRACE_SECONDS:g} seconds. It is left behind and ends "
        f"when its current call returns, or with the program. Its stack:\n{stack.rstrip()}"
    )


def nbytes_of(datapoint: Any) -> int:
    """Estimates the bytes of the arrays, bytes, texts and numbers of a datapoint.

    It is quick for long datapoints: the first elements of a long list or dict stand for all of
    them. An object of another kind counts without the objects it refers to.
    """
    return _nbytes(datapoint, _SAMPLES)


def _nbytes(value: Any, samples: Tuple[int, ...]) -> int:
    if isinstance(value, (np.ndarray, np.generic, memoryview)):
        return value.nbytes
    if not samples or not isinstance(value, (list, tuple, dict)) or not value:
        return sys.getsizeof(value, 0)
    count = min(len(value), samples[0])
    elements = value.values() if isinstance(value, dict) else value
    total = sum(_nbytes(each, samples[1:]) for each in itertools.islice(elements, count))
    return total * len(value) // count
