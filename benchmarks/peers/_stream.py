"""The datapoints that R8 sends between processes, and the clock it takes their rate with.

numpy only and Python 3.7: each peer runs it in an environment of its own.
"""

import argparse
import time

import numpy as np

__all__ = ["LARGE", "SMALL", "count_per_second", "make_array", "parse_args"]

LARGE = (64, 224, 224, 3)  # 9.6 MB
SMALL = (84, 84, 4)  # 28 kB
WARM_UP = 1.0  # seconds
PROCESSES = 2


def parse_args(description):
    """The command line that all of them have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", choices=("large", "small"), default="large")
    parser.add_argument("--seconds", type=float, default=3.0)
    return parser.parse_args()


def make_array(size):
    """One datapoint, uint8."""
    return np.ones(LARGE if size == "large" else SMALL, np.uint8)


def count_per_second(stream, seconds):
    """How many arrays per second come out of an endless iterator; each is looked at, none kept."""
    start, count, begin = time.perf_counter(), 0, None
    for array in stream:
        if array[-1, -1, -1].max() != 1:
            raise RuntimeError("The data has changed on its way.")
        now = time.perf_counter()
        if begin is None:
            if now - start >= WARM_UP:
                begin = now
            continue
        count += 1
        if now - begin >= seconds:
            return count / (now - begin)
    raise RuntimeError("The data ended early.")
