"""Tests of `tensorpack.utils.worker_watch`."""

import multiprocessing
import os
import queue
import signal
import threading
import time

import pytest

from tensorpack.utils.processes import ProcessGroup
from tensorpack.utils.worker import make_worker
from tensorpack.utils.worker_errors import WorkerDied
from tensorpack.utils.worker_watch import WorkerWatch
from tests.utils import worker_targets as targets

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def ends():
    """What was heard, as (process, error)."""
    return queue.Queue()


@pytest.fixture
def watch(ends):
    with WorkerWatch(lambda process, error: ends.put((process, error))) as watch:
        yield watch


def start(watch, target, *args, **options):
    process = make_worker(target, args, name="Loader", method="fork", **options)
    process.start()
    watch.add(process)
    return process


@pytest.mark.timed
def test_a_death_is_heard_within_a_second(watch, ends):
    workers = [start(watch, targets.sleep) for _ in range(3)]
    with ProcessGroup(workers):
        time.sleep(0.1)  # the thread sleeps
        killed = time.monotonic()
        os.kill(workers[1].pid, signal.SIGKILL)
        process, error = ends.get(timeout=5)
        assert time.monotonic() - killed < 1.0
        assert process is workers[1] and isinstance(error, WorkerDied)
        assert (error.name, error.pid, error.signum) == ("Loader", workers[1].pid, 9)
        watch.close()
    assert ends.empty()


def test_an_exception_is_heard(watch, ends):
    start(watch, targets.fail)
    assert repr(ends.get(timeout=5)[1]) == repr(LookupError("no such datapoint"))


def test_a_plain_process_is_heard(watch, ends):
    process = FORK.Process(target=targets.leave, args=(3,))
    process.start()
    watch.add(process)
    assert ends.get(timeout=5)[1].exitcode == 3


def test_an_end_in_order_is_nothing_unless_it_is_endless(watch, ends):
    start(watch, targets.nothing)
    start(watch, targets.nothing, endless=True)
    assert ends.get(timeout=5)[1].exitcode == 0
    watch.close()
    assert ends.empty()


def test_who_is_removed_may_end(watch, ends):
    worker = start(watch, targets.sleep)
    watch.remove(worker)
    worker.kill()
    worker.join(5)
    watch.close()
    assert ends.empty()


def test_who_ended_just_before_the_close_is_heard(watch, ends):
    worker = make_worker(targets.leave, [3], name="Loader", method="fork")
    worker.start()
    worker.join(5)
    watch.add(worker)
    watch.close()
    assert ends.get_nowait()[1].exitcode == 3


def test_the_thread_sleeps_and_ends_with_the_block():
    with WorkerWatch(print) as watch:
        with ProcessGroup(start(watch, targets.sleep)) as group:
            thread = [each for each in threading.enumerate() if each.name == "WorkerWatch"][0]
            time.sleep(0.1)
            path = f"/proc/self/task/{getattr(thread, 'native_id', os.getpid())}/stat"
            before = cpu_ticks(path)
            time.sleep(0.3)
            assert cpu_ticks(path) - before <= 2
            watch.remove(group.processes[0])
    assert not thread.is_alive()
    watch.close()


def cpu_ticks(path):
    with open(path) as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_listener_that_fails_does_not_end_the_watch(capsys):
    heard = queue.Queue()

    def listen(process, error):
        heard.put(process)
        raise ValueError("broken listener")

    with WorkerWatch(listen) as watch:
        start(watch, targets.leave, 3)
        heard.get(timeout=5)
        start(watch, targets.leave, 3)
        heard.get(timeout=5)
    out = capsys.readouterr().out
    assert out.count("Could not tell that Loader has ended.") == 2


def test_closing_it_without_a_start_is_fine():
    WorkerWatch(print).close()


def test_who_closes_its_descriptors_is_watched_no_more(watch, ends, capsys):
    ready = FORK.Event()
    worker = start(watch, close_all, ready)
    with ProcessGroup(worker):
        assert ready.wait(5)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if "Loader has closed its descriptors" in capsys.readouterr().out:
                break
            time.sleep(0.05)
        else:
            pytest.fail("nothing was said")
        assert worker.is_alive()
    assert ends.empty()


def close_all(ready):
    os.closerange(3, 10_000)
    ready.set()
    time.sleep(60)
