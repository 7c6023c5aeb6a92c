"""The threads of a pool are joined, and one that hangs is left behind and told of."""

import threading

import pytest

from tensorpack.dataflow._threads.workers import ThreadPool
from tests.dataflow._threads.waiting import SHORT, call_in_thread
from tests.dataflow.helpers import LONG


def test_pool_leaves_behind_what_hangs_and_says_so_once(capsys):
    gate = threading.Event()

    def work(number):
        if number == 1:
            this_hangs()

    def this_hangs():
        assert gate.wait(LONG)

    pool = ThreadPool("Worker", grace_seconds=0.05)
    pool.start(work, 3)
    for thread in threading.enumerate():
        if thread.name in ("Worker-0", "Worker-2"):
            thread.join(LONG)
    assert not pool.join()
    assert not pool.join()
    out = capsys.readouterr().out
    assert out.count("Worker-1 did not stop within 0.05 seconds") == 1
    assert "Worker-0" not in out and "in this_hangs" in out
    (left,) = [thread for thread in threading.enumerate() if thread.name == "Worker-1"]
    gate.set()
    left.join(LONG)
    assert pool.join()


def test_pool_is_not_joined_by_its_own_threads(capsys):
    pool = ThreadPool("Worker")
    joined = []
    pool.start(lambda number: joined.append(pool.join()), 2)
    assert pool.join()
    assert joined == [False, False]
    assert capsys.readouterr().out == ""


def test_pool_that_was_joined_starts_nothing():
    called = []
    pool = ThreadPool("Worker")
    assert pool.join()
    pool.start(called.append, 3)
    assert pool.join()
    assert called == []


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
