"""Tests of `tensorpack.utils.concurrency`; those with a session need TensorFlow."""

import itertools
import queue
import threading
import time

import pytest

from tensorpack.utils.concurrency import (
    LoopThread,
    OrderedContainer,
    ShareSessionThread,
    StoppableThread,
    guard_thread,
)


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


def run_with(method, *args):
    """Runs a method of a new StoppableThread in another thread; returns (thread, done, results)."""
    owner, done, results = StoppableThread(), threading.Event(), []

    def work():
        results.append(getattr(owner, method)(*args))
        done.set()

    threading.Thread(target=work).start()
    return owner, done, results


def test_stop_sets_the_event_that_may_be_shared():
    event = threading.Event()
    one, other = StoppableThread(event), StoppableThread(event)
    assert not one.stopped()
    one.stop()
    assert one.stopped() and other.stopped() and event.is_set()
    assert not StoppableThread().stopped()


def test_put_and_get_pass_objects():
    thread, q = StoppableThread(), queue.Queue(1)
    assert thread.queue_put_stoppable(q, None) is True
    assert thread.queue_get_stoppable(q) is None and q.empty()


def test_put_waits_for_room():
    q = queue.Queue(1)
    q.put("first")
    _, done, results = run_with("queue_put_stoppable", q, "second")
    assert not done.wait(0.15)
    assert q.get() == "first" and q.get(timeout=5) == "second"
    assert done.wait(5) and results == [True]


@pytest.mark.timed
@pytest.mark.parametrize(
    "method, args", [("queue_put_stoppable", ("x",)), ("queue_get_stoppable", ())]
)
def test_stop_ends_a_wait_soon(method, args):
    q = queue.Queue(1)
    if method == "queue_put_stoppable":
        q.put("full")
    thread, done, results = run_with(method, q, *args)
    assert not done.wait(0.05)
    begin = time.monotonic()
    thread.stop()
    assert done.wait(5) and time.monotonic() - begin < 0.5
    assert results == [False if args else None]
    assert q.qsize() == len(args)


def test_a_stopped_thread_touches_no_queue():
    thread, q = StoppableThread(), queue.Queue()
    q.put("left")
    thread.stop()
    assert thread.queue_get_stoppable(q) is None
    assert thread.queue_put_stoppable(q, "more") is False
    assert q.qsize() == 1


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


def test_a_loop_may_pause_itself(loop):
    paused = threading.Event()

    def func():
        loop_thread.pause()
        paused.set()

    loop_thread = LoopThread(func)
    loop_thread.start()
    assert paused.wait(5)
    loop_thread.stop()
    join(loop_thread)


def test_pausable_is_asked_for():
    thread = LoopThread(print, pausable=False)
    for method in (thread.pause, thread.resume):
        with pytest.raises(RuntimeError, match="pausable=True"):
            method()


def test_pause_returns_after_the_loop_has_failed(loop):
    errors = []
    thread = LoopThread(lambda: 1 / 0)
    guard_thread(thread, errors.append)
    run_to_end(thread)
    thread.pause()
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_guarded_thread_hands_its_error_over(capsys):
    errors = []
    thread = threading.Thread(target=lambda: [].pop())
    guard_thread(thread, lambda error: errors.append((error, threading.current_thread())))
    assert thread.error is None
    run_to_end(thread)
    assert errors == [(thread.error, thread)] and isinstance(thread.error, IndexError)
    assert thread.error.__traceback__ is not None
    assert capsys.readouterr().err == ""


def test_a_guarded_thread_without_an_error_has_none():
    errors = []
    thread = threading.Thread(target=int)
    guard_thread(thread, errors.append)
    run_to_end(thread)
    assert thread.error is None and errors == []


def test_what_is_not_an_error_passes_the_guard():
    def leave():
        raise SystemExit

    errors = []
    thread = threading.Thread(target=leave)
    guard_thread(thread, errors.append)
    with pytest.raises(SystemExit):
        thread.run()
    assert thread.error is None and errors == []


def test_a_running_thread_cannot_be_guarded():
    thread = threading.Thread(target=int)
    run_to_end(thread)
    with pytest.raises(RuntimeError, match="before start"):
        guard_thread(thread, print)


def test_it_is_a_stoppable_thread_and_forwards_stop():
    inner = StoppableThread()
    outer = ShareSessionThread(inner)
    outer.stop()
    assert isinstance(outer, StoppableThread) and outer.stopped() and inner.stopped()
    ShareSessionThread(threading.Thread()).stop()  # has nothing to forward to


def test_it_runs_the_wrapped_thread_under_its_name(capsys):
    seen = []
    inner = threading.Thread(target=lambda: seen.append(threading.current_thread()), name="player")
    outer = ShareSessionThread(inner)
    run_to_end(outer)
    assert seen == [outer] and outer.name == "player"
    assert "WRN player was started without a default TensorFlow session" in capsys.readouterr().out


def test_an_error_of_the_wrapped_thread_is_heard():
    errors = []
    outer = ShareSessionThread(threading.Thread(target=lambda: 1 / 0))
    guard_thread(outer, errors.append)
    run_to_end(outer)
    assert isinstance(outer.error, ZeroDivisionError) and errors == [outer.error]


def test_session_and_graph_are_the_defaults_in_the_thread():
    tf = pytest.importorskip("tensorflow").compat.v1
    seen = []

    def look():
        seen.append((tf.get_default_session(), tf.get_default_graph()))

    graph = tf.Graph()
    with tf.Session(graph=graph) as session:
        outer = ShareSessionThread(threading.Thread(target=look))
        run_to_end(outer)
    assert seen == [(session, graph)]


class Reader(ShareSessionThread):
    """Uses the session in a run of its own."""

    def run(self):
        """Keeps the session that it sees."""
        with self.default_sess() as session:
            self.seen = session


def test_a_derived_thread_takes_the_session_where_it_is_started():
    tf = pytest.importorskip("tensorflow").compat.v1
    thread = Reader()
    with tf.Graph().as_default(), tf.Session() as session:
        run_to_end(thread)
    assert thread.seen is session


def test_no_session_is_looked_for_without_tensorflow(run_python):
    code = (
        "import sys\n"
        "from tensorpack.utils.concurrency import ShareSessionThread\n"
        "thread = ShareSessionThread(); thread.start(); thread.join()\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", list(itertools.permutations([5, 6, 7])))
def test_results_come_out_in_order(order):
    container, out = OrderedContainer(start=5), []
    for rank in order:
        container.put(rank, str(rank))
        while container.has_next():
            out.append(container.get())
    assert out == [(5, "5"), (6, "6"), (7, "7")]


def test_a_gap_holds_everything_back():
    container = OrderedContainer()
    container.put(1, "b")
    assert not container.has_next()
    with pytest.raises(RuntimeError, match="Number 0 is not available"):
        container.get()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_number_comes_once(rank):
    container = OrderedContainer()
    container.put(0, None)
    container.get()
    container.put(1, None)
    with pytest.raises(ValueError, match=f"Number {rank} was added before"):
        container.put(rank, None)
