import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest

from tensorpack.callbacks import StartProcOrThread
from tensorpack.callbacks import concurrency as module
from tensorpack.utils.concurrency import LoopThread, StoppableThread
from tensorpack.utils.stopping import Failed, Finished, Interrupted, StopRequested
from tensorpack.utils.workers.worker import Worker
from tensorpack.utils.workers.worker_errors import WorkerDied
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import CallbackContract
from tests.utils import worker_targets as targets


class Looper(StoppableThread):
    def __init__(self, name="Looper"):
        super().__init__()
        self.name = name
        self.rounds = 0

    def run(self):
        while not self.stopped():
            self.rounds += 1
            time.sleep(0.001)


class TestStartProcOrThread(CallbackContract):
    def make_callback(self):
        return StartProcOrThread(Looper())


def test_threads_run_during_the_training_and_are_joined(capsys):
    threads = [Looper("First"), Looper("Second")]
    alive = []

    def look(_):
        alive.append(all(thread.is_alive() for thread in threads))

    MiniTrainer([StartProcOrThread(threads), when(trigger_step=look)]).train()
    assert alive == [True, True]
    assert not any(thread.is_alive() for thread in threads)
    assert log_lines(capsys) == [
        "Starting First, Second ...",
        "Stopping First ...",
        "Stopping Second ...",
    ]


def test_threads_are_told_as_soon_as_the_run_is_asked_to_end():
    worker = Looper()
    trainer = MiniTrainer([StartProcOrThread(worker)])
    with trainer.session():
        trainer.callbacks.before_train()
        trainer.stop_token.request(Finished())
        worker.join(2)
        assert not worker.is_alive()


def test_an_error_in_a_thread_ends_the_run_with_it():
    def work():
        raise ValueError("broken worker")

    thread = LoopThread(work)
    thread.name = "Breaking"
    assert repr(reason_of(thread)) == repr(Failed(ValueError("broken worker"), "Breaking"))


def test_a_thread_may_exit_in_order_as_a_process_may():
    orderly = threading.Thread(target=sys.exit)

    def finish(trainer):
        orderly.join(5)
        trainer.stop_token.request(Finished())

    assert isinstance(reason_of(orderly, finish), Finished)


def test_a_plain_thread_is_waited_for_and_named(capsys):
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="Plain", daemon=True)
    MiniTrainer([StartProcOrThread(thread)]).train()
    lines = log_lines(capsys)
    over.set()
    thread.join(2)
    assert lines[-1].startswith("Thread Plain still runs: it has no stop()")


def test_after_a_signal_a_plain_thread_that_waits_for_a_message_exits(capsys):
    zmq = pytest.importorskip("zmq")
    context = zmq.Context()
    incoming = context.socket(zmq.PULL)
    incoming.bind("inproc://nothing-comes")
    thread = threading.Thread(target=incoming.recv, name="Plain", daemon=True)
    interrupt = Interrupted(signal.SIGTERM)
    assert reason_of(thread, lambda trainer: trainer.stop_token.request(interrupt)) == interrupt
    assert not thread.is_alive()
    context.destroy()  # ZeroMQ aborts if the thread is still in there
    assert "still runs" not in capsys.readouterr().out


def test_a_thread_that_does_not_listen_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr(module, "_JOIN_SECONDS", 0.1)
    over = threading.Event()

    class Deaf(StoppableThread):
        def run(self):
            over.wait()

    deaf = Deaf()
    deaf.name, deaf.daemon = "Deaf", True
    MiniTrainer([StartProcOrThread(deaf)]).train()
    over.set()
    deaf.join(2)
    assert log_lines(capsys)[-1] == "Cannot join thread Deaf."


def test_a_thread_can_be_left_alone(capsys):
    worker = Looper()
    MiniTrainer([StartProcOrThread(worker, stop_at_last=False)]).train()
    assert worker.is_alive()
    worker.stop()
    worker.join(2)
    assert log_lines(capsys) == ["Starting Looper ..."]


def test_what_was_started_is_stopped_if_the_next_one_cannot_be():
    first, second = Looper("First"), Looper("Second")
    second.stop()
    second.start()
    second.join()
    with pytest.raises(RuntimeError):
        MiniTrainer([StartProcOrThread([first, second])]).train()
    assert not first.is_alive()


def _sleep():
    time.sleep(60)


def test_a_process_is_terminated_and_joined(capsys):
    process = multiprocessing.get_context("spawn").Process(target=_sleep, name="Sleeper")
    MiniTrainer([StartProcOrThread(process)]).train()
    assert not process.is_alive() and process.exitcode == -15
    assert log_lines(capsys) == ["Starting Sleeper ...", "Stopping Sleeper ..."]


def reason_of(startable, in_step=lambda trainer: None):
    """Trains until the run is asked to end, as may be done in the first step; returns why."""

    def wait(callback):
        in_step(trainer)
        trainer.stop_token.wait(20)
        trainer.check_stop()

    trainer = MiniTrainer([StartProcOrThread(startable), when(trigger_step=wait)])
    with pytest.raises(StopRequested):
        trainer.train()
    assert trainer.stop_token.late_reasons == []
    return trainer.stop_token.reason


def worker_of(target, *args, name="Loader", **options):
    return Worker(target, args, name=name, method="spawn", **options)


def test_a_plain_process_that_dies_ends_the_run():
    sleeper = multiprocessing.get_context("spawn").Process(target=_sleep, name="Sleeper")
    reason = reason_of(sleeper, lambda _: os.kill(sleeper.pid, signal.SIGKILL))
    assert isinstance(reason, Failed) and reason.where == "Sleeper"
    assert isinstance(reason.error, WorkerDied) and reason.error.signum == signal.SIGKILL


def test_an_endless_worker_that_is_over_ends_the_run():
    reason = reason_of(worker_of(targets.nothing, endless=True))
    assert isinstance(reason.error, WorkerDied) and reason.error.exitcode == 0


def test_a_worker_that_is_over_in_order_is_fine(capsys):
    worker = worker_of(targets.nothing)
    waiting = when(trigger_step=lambda _: worker.join(20))
    trainer = MiniTrainer([StartProcOrThread(worker), waiting]).train()
    assert trainer.stop_token.reason is None


def test_a_signal_to_the_group_is_not_the_fault_of_the_worker(capsys):
    worker = worker_of(_sleep)

    def signalled(trainer):
        os.kill(worker.pid, signal.SIGTERM)
        worker.join(20)
        time.sleep(0.1)
        trainer.stop_token.request(Interrupted(signal.SIGTERM))

    assert reason_of(worker, signalled) == Interrupted(signal.SIGTERM)
