"""Tests of `tensorpack.utils.session_thread`; those with a session need TensorFlow."""

import threading

import pytest

from tensorpack.utils.concurrency import ShareSessionThread, StoppableThread, guard_thread


def join(thread):
    thread.join(5)
    assert not thread.is_alive()


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
    outer.start()
    join(outer)
    assert seen == [outer] and outer.name == "player"
    assert "WRN player was started without a default TensorFlow session" in capsys.readouterr().out


def test_an_error_of_the_wrapped_thread_is_heard():
    errors = []
    outer = ShareSessionThread(threading.Thread(target=lambda: 1 / 0))
    guard_thread(outer, errors.append)
    outer.start()
    join(outer)
    assert isinstance(outer.error, ZeroDivisionError) and errors == [outer.error]


def test_session_and_graph_are_the_defaults_in_the_thread():
    tf = pytest.importorskip("tensorflow").compat.v1
    seen = []

    def look():
        seen.append((tf.get_default_session(), tf.get_default_graph()))

    graph = tf.Graph()
    with tf.Session(graph=graph) as session:
        outer = ShareSessionThread(threading.Thread(target=look))
        outer.start()
        join(outer)
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
        thread.start()
    join(thread)
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
