"""Dataflows that break, block, end or give what no model takes."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tensorpack.dataflow import DataFlow

from .marks import mark

GOOD = [np.ones(4, np.float32), np.ones(4, np.float32)]


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
