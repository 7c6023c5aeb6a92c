"""Tests of `tensorpack.utils.workers.worker.WorkerWatch`."""

import multiprocessing
import os
import queue
import signal
import threading
import time

import pytest

from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker import WorkerWatch, make_worker
from tensorpack.utils.workers.worker_errors import WorkerDied
from tests.utils import worker_targets as targets

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def ends():
    """What was heard, as (process, error)."""
    return queue.Queue()


@pytest.fixture
def watch(ends):
    """Watches processes until the end of the test."""
    watches = []

    def watch(*processes):
        watches.append(WorkerWatch(processes, lambda process, error: ends.put((process, error))))
        return watches[-1]

    yield watch
    for each in watches:
        each.close()


def start(target, *args, **options):
    process = make_worker(target, args, name="Loader", method="fork", **options)
    process.start()
    return process


@pytest.mark.timed
def test_a_death_is_heard_within_a_second(watch, ends):
    workers = [start(targets.sleep) for _ in range(3)]
    watching = watch(*workers)
    with ProcessGroup(workers):
        time.sleep(0.1)  # the thread sleeps
        killed = time.monotonic()
        os.kill(workers[1].pid, signal.SIGKILL)
        process, error = ends.get(timeout=5)
        assert time.monotonic() - killed < 1.0
        assert process is workers[1] and isinstance(error, WorkerDied)
        assert (error.name, error.pid, error.signum) == ("Loader", workers[1].pid, 9)
        watching.close()
    assert ends.empty()


def test_a_plain_process_is_heard(watch, ends):
    process = FORK.Process(target=targets.leave, args=(3,))
    process.start()
    watch(process)
    assert ends.get(timeout=5)[1].exitcode == 3


def test_an_end_in_order_is_an_error_only_of_an_endless_worker(watch, ends):
    watching = watch(start(targets.nothing), start(targets.nothing, endless=True))
    assert ends.get(timeout=5)[1].exitcode == 0
    watching.close()
    assert ends.empty()


def test_an_end_just_before_the_close_is_heard(watch, ends):
    worker = start(targets.leave, 3)
    worker.join(5)
    watch(worker).close()
    assert ends.get_nowait()[1].exitcode == 3


def test_the_thread_sleeps_and_ends_with_the_watch():
    with ProcessGroup(start(targets.sleep)) as group:
        watching = WorkerWatch(group.processes, print)
        thread = [each for each in threading.enumerate() if each.name == "WorkerWatch"][0]
        time.sleep(0.1)
        before = time.process_time()
        time.sleep(0.4)
        assert time.process_time() - before < 0.2
        watching.close()
    assert not thread.is_alive()
    watching.close()


def test_a_process_that_is_forked_meanwhile_does_not_hold_the_watch(watch):
    watching = watch()
    with ProcessGroup(start(targets.sleep)):
        watching.close()


def test_a_listener_that_fails_does_not_end_the_watch(capsys):
    heard = queue.Queue()

    def listen(process, error):
        heard.put(process)
        raise ValueError("broken listener")

    watching = WorkerWatch([start(targets.leave, 3) for _ in range(2)], listen)
    assert {heard.get(timeout=5).exitcode for _ in range(2)} == {3}
    watching.close()
    assert capsys.readouterr().out.count("Could not report that Loader ended.") == 2


def test_a_process_that_closes_its_descriptors_is_watched_no_more(watch, ends, capsys):
    ready = FORK.Event()
    worker = start(close_all, ready)
    watch(worker)
    with ProcessGroup(worker):
        assert ready.wait(5)
        deadline = time.monotonic() + 5
        while "Loader closed its descriptors" not in capsys.readouterr().out:
            assert time.monotonic() < deadline, "nothing was said"
            time.sleep(0.05)
        assert worker.is_alive()
    assert ends.empty()


def close_all(ready):
    os.closerange(3, 10_000)
    ready.set()
    time.sleep(60)
