"""Tests of `tensorpack.utils.concurrency`."""

import multiprocessing
import os
import queue
import subprocess
import sys
import threading
import time

import pytest

from tensorpack.utils.concurrency import (
    DIE,
    LoopThread,
    OrderedContainer,
    OrderedResultGatherProc,
    ShareSessionThread,
    StoppableThread,
    guard_thread,
)
from tests.checks import ROOT
from tests.processes import gone, wait_until


@pytest.fixture
def loop():
    """Makes and starts a LoopThread over a function; stops and joins it in the end."""
    started = []

    def start(func, **options):
        thread = LoopThread(func, **options)
        started.append(thread)
        thread.start()
        return thread

    yield start
    for thread in started:
        thread.stop()
        thread.join(5)


def join(thread):
    thread.join(5)
    assert not thread.is_alive()


def run_to_end(thread):
    thread.start()
    join(thread)


def test_stop_sets_the_event_that_may_be_shared():
    event = threading.Event()
    one, other = StoppableThread(event), StoppableThread(event)
    assert not one.stopped()
    one.stop()
    assert one.stopped() and other.stopped() and event.is_set()
    assert not StoppableThread().stopped()


@pytest.mark.timed
@pytest.mark.parametrize("method, args", [("put", ("x",)), ("get", ())])
def test_a_queue_is_waited_for_until_the_thread_is_stopped(method, args):
    thread, q, results = StoppableThread(), queue.Queue(1), []
    call = getattr(thread, f"queue_{method}_stoppable")
    assert thread.queue_put_stoppable(q, "first") is True
    if method == "get":
        assert thread.queue_get_stoppable(q) == "first"
    waiting = threading.Thread(target=lambda: results.append(call(q, *args)))
    waiting.start()
    waiting.join(0.15)
    assert waiting.is_alive()
    begin = time.monotonic()
    thread.stop()
    join(waiting)
    assert time.monotonic() - begin < 0.5
    assert results == [False if args else None] and q.qsize() == len(args)


def test_a_loop_calls_until_stopped(loop):
    calls = queue.Queue()
    thread = loop(lambda: (calls.put(1), time.sleep(0.001)))
    for _ in range(3):
        calls.get(timeout=5)
    thread.stop()
    join(thread)


def test_pause_waits_for_the_call_and_holds_until_resume(loop):
    calls, entered, release = [], threading.Event(), threading.Event()

    def func():
        entered.set()
        release.wait(5)
        calls.append(len(calls))
        time.sleep(0.001)

    thread = loop(func)
    assert entered.wait(5)
    threading.Timer(0.1, release.set).start()
    thread.pause()
    count = len(calls)
    assert count >= 1
    time.sleep(0.05)
    assert len(calls) == count
    thread.pause()  # a second time changes nothing
    entered.clear()
    thread.resume()
    assert entered.wait(5)


def test_stop_ends_a_paused_loop(loop):
    thread = loop(lambda: time.sleep(0.001))
    thread.pause()
    thread.stop()
    join(thread)


@pytest.mark.parametrize("kind", [lambda f: threading.Thread(target=f), LoopThread])
def test_a_guarded_thread_hands_its_error_over(kind, capsys):
    errors = []
    thread = kind(lambda: [].pop())
    guard_thread(thread, lambda error: errors.append((error, threading.current_thread())))
    assert thread.error is None
    run_to_end(thread)
    assert errors == [(thread.error, thread)] and isinstance(thread.error, IndexError)
    assert thread.error.__traceback__ is not None
    assert capsys.readouterr().err == ""
    if kind is LoopThread:
        thread.pause()  # returns


@pytest.mark.parametrize("leave", [SystemExit(3), SystemExit(), KeyboardInterrupt("k")])
def test_what_would_end_a_thread_without_a_word_is_an_error(leave, capsys):
    def run():
        raise leave

    errors = []
    thread = threading.Thread(target=run, name="player")
    guard_thread(thread, errors.append)
    run_to_end(thread)
    assert errors == [thread.error] and type(thread.error) is RuntimeError
    assert str(thread.error).startswith(f"{leave!r} ended the thread player: ")
    assert thread.error.__cause__ is leave
    assert capsys.readouterr().err == ""


def test_it_runs_the_wrapped_thread_under_its_name(capsys):
    seen = []
    inner = threading.Thread(target=lambda: seen.append(threading.current_thread()), name="player")
    outer = ShareSessionThread(inner)
    run_to_end(outer)
    assert seen == [outer] and outer.name == "player"
    assert "WRN player was started without a default TensorFlow session" in capsys.readouterr().out


def test_results_come_out_in_order():
    container, out = OrderedContainer(start=5), []
    for rank in 6, 7, 5:
        assert not container.has_next()
        container.put(rank, str(rank))
    while container.has_next():
        out.append(container.get())
    assert out == [(5, "5"), (6, "6"), (7, "7")]


def test_results_of_several_producers_come_in_order():
    data = multiprocessing.Queue()
    gatherer = OrderedResultGatherProc(data, 2, start=3)
    for result in [(4, "b"), (3, "a"), (DIE, None), (6, "d"), (5, "c"), (DIE, None)]:
        data.put(result)
    gatherer.run()  # what the process does
    results = [gatherer.get(), *(gatherer.result_queue.get(timeout=10) for _ in range(5))]
    assert results == [(3, "a"), (4, "b"), (DIE, None), (5, "c"), (6, "d"), (DIE, None)]
    for used in data, gatherer.result_queue:
        used.close()
        used.join_thread()


ORPHAN = """
import multiprocessing, os, time
from tensorpack.utils.concurrency import enable_death_signal

def work():
    enable_death_signal()
    print(os.getpid(), flush=True)
    time.sleep(60)

child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_a_process_dies_with_its_parent():
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as parent:
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
        parent.wait()
        assert wait_until(lambda: gone(pid), 10)
