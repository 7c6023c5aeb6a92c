import multiprocessing
import threading
import time
import types

import pytest

from tensorpack.callbacks import StalledTraining, Watchdog
from tensorpack.compat import tfv1 as tf
from tensorpack.utils.stopping import Failed, StopRequested
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker import make_worker
from tests.callbacks.driver import MiniTrainer, when
from tests.clock import FakeClock
from tests.contracts.callback import contract_of
from tests.utils import worker_targets as targets

TestWatchdog = contract_of(Watchdog)


def watched(clock):
    """A watchdog that is looked after by hand, and its trainer."""
    watchdog = Watchdog(timeout=10.0, clock=clock)
    return watchdog, MiniTrainer([watchdog])


def reports(capsys):
    return capsys.readouterr().out.count("No step finished")


def test_a_halt_is_reported_once_with_queues_and_stacks(capsys):
    clock, queue = FakeClock(), tf.FIFOQueue(50, tf.float32, name="my_queue")
    enqueue = queue.enqueue(1.0)
    single = tf.FIFOQueue(1, tf.float32, name="single")
    single.enqueue(1.0)
    watchdog, trainer = watched(clock)
    with trainer.session() as sess:
        trainer.callbacks.before_train()
        watchdog.check()
        sess.run(enqueue)
        clock.advance(9.9)
        watchdog.check()
        assert reports(capsys) == 0
        clock.advance(0.1)
        watchdog.check()
        clock.advance(100)
        watchdog.check()
        printed = capsys.readouterr().out
        assert printed.count("No step finished and no callback returned for 10 seconds") == 1
        assert "  my_queue: 1 of 50\n" in printed and "  single: 0 of 1\n" in printed
        assert "MainThread:\n" in printed and "in test_a_halt_is_reported" in printed
        assert "Watchdog:\n" in printed
        assert printed.endswith("Processes:\n  none\n")
        assert not trainer.stop_token.requested


@pytest.mark.slow
def test_the_report_shows_what_the_processes_do(capsys):
    context, clock = multiprocessing.get_context("spawn"), FakeClock()
    ready = [context.Event() for _ in range(2)]
    hangs = make_worker(targets.hang_in_c, ready[:1], name="Hangs", method="spawn")
    plain = context.Process(target=targets.sleep, args=ready[1:], name="Plain")
    watchdog, trainer = watched(clock)
    with trainer.session(), ProcessGroup([hangs, plain]) as group:
        trainer.callbacks.before_train()
        watchdog.check()
        group.start()
        assert all(event.wait(20) for event in ready)
        clock.advance(10)
        watchdog.check()
        printed, deadline = "", time.monotonic() + 20
        while "Plain (pid" not in printed and time.monotonic() < deadline:
            time.sleep(0.01)  # its own thread may have been the first to look
            printed += capsys.readouterr().out
    printed = printed.partition("\nProcesses:\n")[2]
    assert f"Hangs (pid {hangs.pid}):\n" in printed and "in hang_in_c\n" in printed
    assert f"Plain (pid {plain.pid}):\nno stack: it was not made by make_worker()" in printed


@pytest.mark.parametrize("waits, expected", [([1.5, 60, 1, 1], 0), ([1] * 11, 1)])
def test_the_time_in_which_it_did_not_run_itself_is_no_halt(capsys, waits, expected):
    clock = FakeClock()
    watchdog, trainer = watched(clock)
    over = types.SimpleNamespace(
        set=lambda: None, clear=lambda: None, wait=lambda _: not waits or clock.advance(waits.pop())
    )
    watchdog._over = over
    with trainer.session():
        trainer.callbacks.before_train()
        watchdog._thread.join()
    assert reports(capsys) == expected


def test_steps_and_callbacks_are_progress_and_the_next_halt_is_reported_again(capsys):
    clock = FakeClock()
    watchdog, trainer = watched(clock)
    with trainer.session():
        trainer.callbacks.before_train()
        watchdog.check()
        for progress in (trainer.step, trainer.callbacks.after_epoch):
            clock.advance(9)
            progress()
            watchdog.check()
        clock.advance(9)
        watchdog.check()
        assert reports(capsys) == 0
        clock.advance(1)
        watchdog.check()
        trainer.step()
        watchdog.check()
        clock.advance(10)
        watchdog.check()
        assert reports(capsys) == 2


def test_it_ends_the_run_if_that_is_wanted():
    def wait(callback):
        callback.trainer.stop_token.wait(10)
        callback.trainer.check_stop()

    trainer = MiniTrainer([Watchdog(timeout=0.05, error=True), when(before_epoch=wait)])
    start = time.monotonic()
    with pytest.raises(StopRequested):
        trainer.train()
    assert time.monotonic() - start < 5
    reason = trainer.stop_token.reason
    assert isinstance(reason, Failed) and reason.where == "Watchdog"
    assert isinstance(reason.error, StalledTraining) and "global_step=0" in str(reason.error)
    assert not [each for each in threading.enumerate() if each.name == "Watchdog"]
