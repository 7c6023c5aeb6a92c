"""Tests of `tensorpack.utils.workers.worker`."""

import ctypes.util
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from multiprocessing import util

import pytest

from tensorpack.train.signals import SignalGuard
from tensorpack.utils.stopping import StopToken
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker import Worker, state_of
from tests.checks import ROOT
from tests.processes import gone, run_python, wait_until
from tests.utils import worker_targets as targets

METHODS = ("spawn", "fork", "forkserver")


def make(target, *args, method="fork", **options):
    return Worker(target, args, name="Loader", method=method, **options)


def ended(target, *args, **options):
    """Runs a worker to its end; returns what is wrong with that."""
    worker = make(target, *args, **options)
    worker.start()
    worker.join(20)
    assert worker.exitcode is not None
    return worker.error()


def ready(method="fork"):
    return multiprocessing.get_context(method).Event()


@pytest.fixture
def running():
    """Starts a worker that says when it is ready; ends it at the end."""
    groups = []

    def start(target, *args, method="fork", **options):
        event = ready(method)
        worker = make(target, event, *args, method=method, **options)
        groups.append(ProcessGroup(worker))
        worker.start()
        assert event.wait(20)
        return worker

    yield start
    for group in groups:
        group.close(grace=0.2)


CALCULATES = """
import ctypes, sys
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker import Worker
from tests.utils import worker_targets as targets
ctypes.CDLL(sys.argv[1]).omp_set_num_threads(2)
targets.calculate(sys.argv[1])
worker = Worker(targets.calculate, sys.argv[1:], name="W", method="fork")
with ProcessGroup(worker):
    worker.start()
    worker.join(20)
    print(worker.exitcode)
"""


def test_a_forked_one_can_calculate_with_openmp_if_its_parent_has():
    library = ctypes.util.find_library("gomp")
    if library is None:
        pytest.skip("there is no libgomp")
    assert run_python("-c", CALCULATES, library).stdout == b"0\n"


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_comes_over_with_its_traceback(method, capfd):
    error = ended(targets.fail, method=method)
    assert repr(error) == repr(LookupError("no such datapoint"))
    assert "worker_targets.py" in str(error.__cause__) and "in fail" in str(error.__cause__)
    assert capfd.readouterr() == ("", "")  # it is told once, here


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_cannot_be_unpickled_comes_over_too(method, capfd):
    error = ended(targets.nothing, targets.Unloadable(), method=method)
    assert repr(error) == repr(LookupError("not here")) and "in refuse" in str(error.__cause__)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", METHODS)
def test_sigterm_ends_it_in_order(running, tmp_path, method):
    worker = running(targets.clean_up, str(tmp_path / "left"), method=method)
    worker.terminate()
    worker.join(5)
    assert worker.exitcode == 143 and (tmp_path / "left").read_text() == "cleaned up"


def test_sigterm_within_an_import_is_not_lost(running, capfd):
    # without the delay, about every second one would print the SystemExit and not end
    for _ in range(8):
        worker = running(targets.take_import_locks)
        worker.terminate()
        worker.join(5)
        assert worker.exitcode == 143 and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["finalize", "Finalize", "__del__"])
def test_sigterm_within_a_finalizer_is_not_lost(running, capfd, kind):
    worker = running(targets.drop, kind)
    worker.terminate()
    worker.join(5)
    assert worker.exitcode == 143 and capfd.readouterr() == ("", "")


def test_a_stopped_one_is_said_to_be_and_can_be_told_to_leave(running):
    worker = running(targets.sleep)
    os.kill(worker.pid, signal.SIGSTOP)
    assert wait_until(lambda: state_of(worker.pid) == "stopped")
    worker.terminate()
    worker.join(5)
    assert worker.exitcode == 143


def test_sigterm_after_the_work_prints_nothing(capfd):
    worker = make(targets.end_slowly)
    worker.start()
    worker.join(10)
    assert worker.exitcode == -signal.SIGTERM and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_the_terminal_does_not_reach_it(method):
    assert ended(targets.hear, signal.SIGINT, signal.SIGHUP, method=method) is None


class Held:
    """Keeps forked workers waiting between the fork and their own work."""

    def __init__(self):
        # pipes, because setting an event waits for processes that were killed while they waited
        self.come, self._coming = multiprocessing.Pipe(duplex=False)
        self._going, self.go = multiprocessing.Pipe(duplex=False)
        util.register_after_fork(self, Held.wait)

    def wait(self):
        self._coming.send(None)
        self._going.poll(20)

    def close(self):
        for end in (self.come, self._coming, self._going, self.go):
            end.close()


@pytest.mark.parametrize("from_thread", [False, True])
def test_told_to_leave_before_it_has_begun_it_does_and_its_parent_hears_nothing(from_thread):
    held, heard = Held(), StopToken()  # before the guard, which puts handlers back
    with SignalGuard(heard):
        worker = make(targets.sleep, ready())
        if from_thread:
            thread = threading.Thread(target=worker.start)
            thread.start()
            thread.join(5)
        else:
            worker.start()
        with ProcessGroup(worker):
            assert held.come.poll(20)
            os.kill(worker.pid, signal.SIGHUP)
            worker.terminate()
            held.go.send(None)
            worker.join(10)
            assert worker.exitcode == 143
    held.close()
    assert not heard.requested


KILLED_EARLY = """
import os, signal, time
from multiprocessing import util
from tensorpack.utils.workers.worker import Worker
class Parent:
    pid = os.getpid()
    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        while os.getppid() == self.pid:
            time.sleep(0.01)
parent = Parent()
util.register_after_fork(parent, Parent.kill)
Worker(print, ["it lives"], name="W", method="fork").start()
time.sleep(60)
"""


def test_one_whose_parent_is_gone_before_it_begins_says_nothing():
    done = run_python("-c", KILLED_EARLY)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, b"", b"")


PARENT = """
import multiprocessing, sys, threading, time
from tensorpack.utils.workers.processes import start_proc_mask_signal
from tensorpack.utils.workers.worker import Worker
from tests.utils import worker_targets as targets
method = sys.argv[1]
events = [multiprocessing.get_context(method).Event() for _ in range(4)]
kinds = [targets.sleep, targets.hang_in_c, targets.stop, targets.sleep]
workers = [
    Worker(kind, [event], name="W", method=method) for kind, event in zip(kinds, events)
]
# a plain copy that lives on for a while, and must not keep the others alive
plain = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
for worker in workers[:-1]:
    worker.start()
thread = threading.Thread(target=workers[-1].start)  # a thread that ends before the workers do
thread.start()
thread.join()
if method == "fork":
    start_proc_mask_signal(plain)
for event in events:
    event.wait()
print(plain.pid or 0, *[worker.pid for worker in workers], flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_die_with_a_killed_parent_whatever_they_do(method):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, method],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as parent:
        plain, *workers = [int(pid) for pid in parent.stdout.readline().split()]
        try:
            assert len(workers) == 4 and not any(gone(pid) for pid in workers)
            parent.kill()
            assert wait_until(lambda: all(gone(pid) for pid in workers), 5)
            assert not plain or not gone(plain)
        finally:
            for pid in workers + [plain] * bool(plain):
                if not gone(pid):
                    os.kill(pid, signal.SIGKILL)
