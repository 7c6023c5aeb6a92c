"""Threads and their buffer: bounded in bytes, joined, and counted."""

import threading

import numpy as np
import pytest

from tensorpack.dataflow._threads.workers import Buffer, ThreadPool, nbytes_of
from tests.processes import LONG

SHORT = 0.15  # for seeing that something does not happen


def call_in_thread(call):
    """Calls in another thread; returns an event that it is done, and the list of its result."""
    done, result = threading.Event(), []

    def run():
        result.append(call())
        done.set()

    threading.Thread(target=run).start()
    return done, result


def test_several_wait_for_bytes_and_all_take_until():
    buffer = Buffer("Flow", 3, 10)
    assert buffer.reserve()
    buffer.put("large", 10)
    waiting = [call_in_thread(buffer.reserve) for _ in range(2)]
    assert not any(done.wait(SHORT) for done, _ in waiting)
    buffer.release(10)
    while not all(done.is_set() for done, _ in waiting):
        buffer.put("small", 1)  # by the one who went on, for he took the room of the other
        buffer.release(1)
    assert [result for _, result in waiting] == [[True], [True]]


def test_pool_is_not_joined_by_its_own_threads_and_then_starts_nothing(capsys):
    pool = ThreadPool("Worker")
    joined = []
    for _ in range(2):
        pool.start(lambda number: joined.append(pool.join()), 2)
        assert pool.join()
        assert joined == [False, False]
    assert capsys.readouterr().out == ""


def test_pool_is_joined_when_all_have_started(monkeypatch):
    start, starting, gate = threading.Thread.start, threading.Event(), threading.Event()
    ended = []

    def slow_start(thread):
        if thread.name == "Worker-1":
            starting.set()
            assert gate.wait(LONG)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", slow_start)
    pool = ThreadPool("Worker")
    starter = threading.Thread(target=pool.start, args=(ended.append, 3))
    starter.start()
    assert starting.wait(LONG)
    done, result = call_in_thread(lambda: (pool.join(), sorted(ended)))
    assert not done.wait(SHORT)
    gate.set()
    assert done.wait(LONG) and result == [(True, [0, 1, 2])]
    starter.join(LONG)


def test_pool_of_which_some_threads_did_not_start(monkeypatch):
    gate = threading.Event()
    start = threading.Thread.start
    started = []

    def no_more_than_two(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_more_than_two)
    pool = ThreadPool("Worker")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        pool.start(lambda number: gate.wait(LONG), 3)
    gate.set()
    assert pool.join()
    assert not any(thread.is_alive() for thread in started)


IMAGE = np.zeros((10, 10, 3), np.uint8)


class NoTruth:
    """Like a tensor of PyTorch, or a sparse matrix."""

    def __bool__(self):
        raise ValueError("The truth value is ambiguous.")


ENDLESS = [IMAGE]
ENDLESS.append(ENDLESS)  # contains itself


@pytest.mark.parametrize(
    "datapoint, least, most",
    [
        (IMAGE, 300, 300),
        ((IMAGE, np.float64(1)), 308, 308),
        ({"a": IMAGE, "b": [IMAGE, IMAGE]}, 900, 900),
        ([[[IMAGE]]], 300, 300),
        ([[IMAGE] * 1000], 300000, 300000),
        ([{"image": IMAGE}] * 100, 30000, 30000),
        ([memoryview(bytes(200))], 200, 200),
        ([b"x" * 1000, 3], 1000, 1200),
        (["x" * 1000], 1000, 1200),
        ([bytearray(1000)], 1000, 1200),
        ([], 0, 200),
        (None, 0, 200),
        ([NoTruth(), IMAGE], 300, 1000),
        (ENDLESS, 300, 300 * 1000),
    ],
)
def test_size_of_a_datapoint(datapoint, least, most):
    assert least <= nbytes_of(datapoint) <= most
