import multiprocessing
import threading
import time

import pytest

from tensorpack.callbacks import StalledTraining, Watchdog
from tensorpack.utils.stopping import Failed, StopRequested
from tensorpack.utils.workers.processes import ProcessGroup
from tests.callbacks.driver import MiniTrainer, when
from tests.contracts.callback import contract_of

TestWatchdog = contract_of(Watchdog)


@pytest.fixture
def watched():
    """A watchdog that is looked after by hand, and its trainer, in a run."""
    watchdog = Watchdog(timeout=10.0)
    watchdog._watch = lambda: None
    trainer = MiniTrainer([watchdog])
    with trainer.session():
        trainer.callbacks.before_train()
        yield watchdog, trainer


def reports(capsys):
    return capsys.readouterr().out.count("No step finished")


def test_a_halt_is_reported_once_with_stacks_and_processes(watched, capsys):
    watchdog, trainer = watched
    process = multiprocessing.get_context("fork").Process(
        target=time.sleep, args=[60], name="Plain"
    )
    with ProcessGroup(process):
        process.start()
        watchdog.check(9.9)
        assert reports(capsys) == 0
        for seconds in 0.1, 100:
            watchdog.check(seconds)
    printed = capsys.readouterr().out
    assert printed.count("No step finished and no callback returned for 10 seconds") == 1
    assert "MainThread:\n" in printed and "in test_a_halt_is_reported" in printed
    assert f"\nProcesses:\nPlain (pid {process.pid}): " in printed
    assert not trainer.stop_token.requested


def test_steps_and_callbacks_are_progress_and_the_next_halt_is_reported_again(watched, capsys):
    watchdog, trainer = watched
    for progress in (trainer.step, trainer.callbacks.after_epoch):
        watchdog.check(9)
        progress()
        watchdog.check(9)
    watchdog.check(9)
    assert reports(capsys) == 0
    watchdog.check(1)
    trainer.step()
    for seconds in 1, 10:
        watchdog.check(seconds)
    assert reports(capsys) == 2


def test_the_time_in_which_it_did_not_run_itself_does_not_count(monkeypatch):
    watchdog, looks, waits = Watchdog(timeout=10.0), [], [True, False, False]
    monkeypatch.setattr(watchdog, "check", looks.append)
    monkeypatch.setattr(watchdog._over, "wait", lambda seconds: waits.pop())
    watchdog._watch()
    assert looks == [1.0, 1.0]


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
