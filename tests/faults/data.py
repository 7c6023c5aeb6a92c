"""Dataflows that break, block, end or give what no model takes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tensorpack.dataflow import DataFlow

from .marks import mark

GOOD = [np.ones(4, np.float32), np.ones(4, np.float32)]

# Fields that must not reach the graph, in the place of the first component.
BAD_FIELDS = {
    "none": None,
    "object": np.array([None] * 4, dtype=object),
    "string": "text",
    "rank": np.ones([4, 4], np.float32),
    "complex": np.ones(4, np.complex64),
    "ragged": [[1.0], [1.0, 2.0]],
}
BAD_LATER = ("none", "object", "rank")  # tried not only at the first datapoint


class Flow(DataFlow):
    """Endless, all ones; what happens at datapoint `at` is up to a function.

    Args:
      at: index of the datapoint, from 0.
      event: called instead of giving it; what it returns is given, unless that is None.
      on_reset: called by `reset_state`.
    """

    def __init__(self, at=None, event=None, on_reset=None):
        self._at, self._event, self._on_reset = at, event, on_reset

    def reset_state(self):
        if self._on_reset is not None:
            self._on_reset()

    def __iter__(self):
        count = 0
        while True:
            instead = self._event() if count == self._at else None
            yield GOOD if instead is None else instead
            count += 1


def breaks():
    raise LookupError("no such datapoint")


def breaks_in_a_thread():
    """Breaks with the error of a thread of its own, as a prefetcher's consumer does."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(breaks).result()


def blocks():
    """Marks `blocked` and gives nothing any more, whoever asks it to stop."""
    mark("blocked")
    threading.Event().wait()


def ignores_everything(phase="deaf"):
    """Marks a phase and swallows whatever is raised in it."""
    mark(phase)
    while True:
        try:
            time.sleep(0.05)
        except BaseException:  # this is the case: what does not let go
            continue


def bad(name):
    """Returns a function that gives a datapoint with that bad field."""
    return lambda: [BAD_FIELDS[name], GOOD[1]]
