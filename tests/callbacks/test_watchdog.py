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


def watch(*seconds):
    """Lets a watchdog of ten seconds look once in so many, with a step between each of them."""
    watchdog = Watchdog(timeout=10.0)
    trainer = MiniTrainer([watchdog])
    actions = [action for count in seconds for action in [trainer.step, *[lambda: None] * count]]
    watchdog._over.wait = lambda poll: not actions or actions.pop(0)()
    watchdog._before_train = lambda: None
    with trainer.session():
        trainer.callbacks.before_train()
        watchdog._watch()
    assert not trainer.stop_token.requested


def test_a_halt_is_reported_once_with_stacks_and_processes(capsys):
    process = multiprocessing.get_context("fork").Process(
        target=time.sleep, args=[60], name="Plain"
    )
    with ProcessGroup(process):
        process.start()
        watch(100)
    printed = capsys.readouterr().out
    assert printed.count("No step finished for 10 seconds, at global_step=1") == 1
    assert "MainThread:\n" in printed and "in test_a_halt_is_reported" in printed
    assert f"\nProcesses:\nPlain (pid {process.pid}): " in printed


@pytest.mark.parametrize("seconds, reports", [([9, 9, 9], 0), ([10, 9, 10], 2)])
def test_a_step_is_progress_and_the_next_halt_is_reported_again(seconds, reports, capsys):
    watch(*seconds)
    assert capsys.readouterr().out.count("No step finished") == reports


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
