"""What worker processes of the tests do: functions and flows that any start method can send."""

import collections
import ctypes
import dataclasses
import enum
import itertools
import os
import pathlib
import random
import signal
import threading
import time

import numpy as np

from tensorpack.dataflow import DataFlow, DataFromList, ProxyDataFlow, RNGDataFlow, UnknownLength

LOCK = threading.Lock()


def numbers(count, shuffle=False):
    """`[0]`, `[1]`, ..."""
    return DataFromList([[i] for i in range(count)], shuffle=shuffle)


def tenfold(datapoint):
    return [10 * datapoint[0]]


def odd(datapoint):
    return datapoint if datapoint[0] % 2 else None


def not_of_three(datapoint):
    return None if datapoint[0] % 3 == 0 else tenfold(datapoint)


def nothing(datapoint):
    return None


def same(datapoint):
    return datapoint


def drawn(datapoint):
    """Adds what it draws from both global streams."""
    return [*datapoint, float(np.random.uniform()), random.random(), np.random.randn(2)]


def arrays_of(datapoint):
    """Three arrays on both sides of what is small, filled with the number."""
    number = datapoint[0]
    return [number, np.full((40, 50), number, np.float32), np.full(9, number), np.arange(300.0)]


def whole_array(datapoint):
    """An array of 10 kB, filled with the number."""
    return [np.full(10000, datapoint[0] % 256, np.uint8)]


def in_process(datapoint):
    """Adds the process id."""
    return [*datapoint, os.getpid()]


def gpus(datapoint):
    return [*datapoint, os.environ["CUDA_VISIBLE_DEVICES"]]


def locked(datapoint):
    """Needs a lock that a thread of the starter may hold."""
    with LOCK:
        return datapoint


def spoiled(datapoint):
    """Changes the datapoint, which is its own."""
    datapoint[0] = -1
    return datapoint


def written(datapoint):
    datapoint[1][0] = 1
    return datapoint


Pair = collections.namedtuple("Pair", "a b")


class Label(enum.Enum):
    CAT = 1


@dataclasses.dataclass
class Sample:
    """As scripts have one: no two are equal by its arrays, so it is compared by its text."""

    path: pathlib.PurePath
    image: np.ndarray


def unfit_at_3(datapoint):
    return [datapoint[0], {"it": [threading.Lock()]}] if datapoint[0] == 3 else datapoint


def unreadable_at_3(datapoint):
    return [3, {"it": [NeedsTwo(1, "text")]}] if datapoint[0] == 3 else datapoint


class NeedsTwo(Exception):
    """Is pickled with one argument."""

    def __init__(self, code, text):
        super().__init__(text)


class Unpicklable(Exception):
    """Cannot be sent to another process."""

    def __init__(self):
        super().__init__("it holds a function")
        self.function = lambda: None


class At:
    """Does something at one number, and nothing else."""

    def __init__(self, number, action):
        self.number, self.action = number, action

    def __call__(self, datapoint):
        if datapoint[0] == self.number:
            self.action()
        return datapoint


def fail():
    raise LookupError("no such datapoint")


def fail_unpicklably():
    raise Unpicklable


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def crash():
    ctypes.string_at(0)


def leave():
    raise SystemExit(3)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def sleep():
    time.sleep(1e6)


class Keeps:
    """Keeps all that it is given."""

    def __init__(self):
        self.kept = []

    def __call__(self, datapoint):
        self.kept.append(datapoint)
        return [len(self.kept)]


class Unsized(ProxyDataFlow):
    """Does not know its length."""

    def __len__(self):
        raise UnknownLength("The length is not known.")


class Plain(DataFlow):
    """A user's flow, which keeps no state."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for i in range(self.count):
            yield [i, "text"]

    def __len__(self):
        return self.count


class Endless(DataFlow):
    """Yields `[0]`, `[1]`, ... without an end."""

    def __iter__(self):
        return ([i] for i in itertools.count())


class Slow(Endless):
    """Takes a while for each."""

    def __iter__(self):
        for i in itertools.count():
            time.sleep(0.001)
            yield [i]


class Noisy(ProxyDataFlow, RNGDataFlow):
    """Adds random numbers of its own stream to datapoints."""

    def reset_state(self):
        ProxyDataFlow.reset_state(self)
        RNGDataFlow.reset_state(self)

    def __iter__(self):
        for datapoint in self.ds:
            yield [*datapoint, int(self.rng.randint(1000))]


class FailsAtReset(Plain):
    """Cannot be reset."""

    def reset_state(self):
        raise OSError("no such file")


class Ragged(DataFlow):
    """Datapoints of all kinds and sizes."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for i in range(self.count):
            yield [
                np.full((i * 997 % 40000, 2), i, np.int16),
                {"text": "ä" * i, "bytes": b"\0" * i, "none": None, "empty": np.zeros((0, 3))},
                (i, i / 3, True, (np.float32(i), [np.array(i)])),
                np.array(["one", "three"]),
            ]

    def __len__(self):
        return self.count


def ones(datapoint):
    """What the tiny model trains on."""
    return [np.ones(4, np.float32), np.ones(4, np.float32)]
