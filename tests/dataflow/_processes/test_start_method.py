"""Processes are forked only where that is safe, and what cannot be sent is named."""

import _thread
import contextlib
import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tqdm import tqdm

from tensorpack.dataflow import DataFromList, MapData, MapDataComponent, PrefetchData
from tensorpack.dataflow._processes import start_method
from tensorpack.dataflow._processes.start_method import choose_start_method, find_unpicklable, start
from tensorpack.utils.workers.worker import Worker
from tests.dataflow import process_functions as functions
from tests.dataflow.process_functions import numbers
from tests.processes import wait_until


@pytest.fixture
def no_session(monkeypatch):
    monkeypatch.setattr(start_method, "_has_session", lambda: False)


def draw_a_bar(stack):
    list(tqdm(range(3)))  # its monitor sleeps until the program ends
    assert tqdm.monitor.is_alive()
    stack.callback(tqdm.monitor.exit)


def use_a_pool(stack):
    pool = stack.enter_context(ThreadPoolExecutor(2))
    assert list(pool.map(abs, [1, -2])) == [1, 2]


@pytest.mark.parametrize("begin", [draw_a_bar, use_a_pool])
def test_threads_that_sleep_or_wait_are_forked_away(begin, no_session):
    with contextlib.ExitStack() as stack:
        begin(stack)
        assert choose_start_method() == "fork"
        flow = PrefetchData(MapData(numbers(20), lambda datapoint: datapoint), 5, 1)
        flow.reset_state()
        assert [number for (number,) in flow] == [*range(20)]
        flow.close()


def counts():
    sum(range(100))


def draws():
    np.random.rand(10000)  # with a lock and without the GIL


@pytest.mark.parametrize("work", [counts, draws])
def test_while_a_thread_works_it_does_not_fork(work, no_session):
    end, begun = threading.Event(), threading.Event()

    def run():  # it need not be a thread of Python's own
        begun.set()
        while not end.is_set():
            work()

    number = _thread.start_new_thread(run, ())
    try:
        assert begun.wait(5) and choose_start_method() == "forkserver"
    finally:
        end.set()
    wait_until(lambda: number not in sys._current_frames())
    assert choose_start_method() == "fork"


def test_with_a_session_it_does_not(monkeypatch):
    monkeypatch.setattr(start_method, "_has_session", lambda: True)
    assert choose_start_method() == "forkserver"


def test_what_is_wanted_is_taken(no_session, monkeypatch):
    for method in "fork", "forkserver", "spawn":
        assert choose_start_method(method) == method
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert choose_start_method() == "spawn"


class Refuses:
    def __reduce__(self):
        raise TypeError("never to be sent")


class Holder:
    def __init__(self, value):
        self.value = value

    def method(self, datapoint):
        return datapoint


def inner(datapoint):
    return datapoint


LAMBDA = lambda datapoint: datapoint  # noqa: E731
LOCK = threading.Lock()


@pytest.mark.parametrize(
    "obj, path",
    [
        (MapData(MapData(numbers(3), LAMBDA), inner), "ds.ds.func"),
        (MapDataComponent(DataFromList([1, (2, {"x": LOCK})]), inner), "ds.ds.lst[1][1]['x']"),
        (MapData(numbers(3), Holder(LAMBDA).method), "ds.func"),
        (Holder([inner, Refuses()]), "ds.value[1]"),
    ],
)
def test_the_innermost_part_with_a_name_is_found(obj, path):
    assert find_unpicklable(obj, "ds")[0] == path


def test_the_reason_is_named_unless_there_is_none():
    _, value, reason = find_unpicklable(Holder(Refuses()), "it")
    assert reason == "TypeError: never to be sent"
    assert isinstance(value, Refuses)
    assert find_unpicklable(MapData(numbers(3), functions.tenfold), "ds") is None
    first, second = Holder(None), Holder(LOCK)  # a circle
    first.value, second.back = second, first
    assert find_unpicklable(first, "ds")[0].startswith("ds.value")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_that_cannot_be_started_says_what_to_do(method):
    flow = MapData(numbers(3), LAMBDA)
    worker = Worker(functions.nothing, (flow,), name="W", method=method)
    with pytest.raises(TypeError) as caught:
        start(worker, method, "ds", flow)
    text = str(caught.value)
    assert text.startswith(f"ds.func cannot be sent to a process that is started by {method!r}: ")
    assert "lambda" in text and "at the top of a module" in text
    assert "start_processes()" in text and "start_method='fork'" in text
