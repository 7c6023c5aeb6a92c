"""A flow that takes as long as it is told to."""

import numpy as np

from tensorpack.dataflow import DataFlow


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Ticking(DataFlow):
    """Takes some seconds for each datapoint, and some for a reset."""

    def __init__(self, clock, seconds, reset=0.0, nbytes=8):
        self._clock, self._seconds, self._reset = clock, seconds, reset
        self._nbytes = nbytes

    def __iter__(self):
        for seconds in self._seconds:
            self._clock.now += seconds
            yield [np.zeros(self._nbytes, np.uint8)]

    def __len__(self):
        return len(self._seconds)

    def reset_state(self):
        self._clock.now += self._reset
