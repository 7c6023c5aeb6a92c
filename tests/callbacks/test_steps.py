import types

import numpy as np
import pytest

from tensorpack.callbacks import (
    Callback,
    EnableCallbackIf,
    ProgressBar,
    SessionRunTimeout,
    TensorPrinter,
    steps,
)
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_lines
from tests.clock import FakeClock
from tests.contracts.callback import contract_of

TestProgressBar = contract_of(lambda: ProgressBar(["cost"]))
TestSessionRunTimeout = contract_of(lambda: SessionRunTimeout(60000))
TestTensorPrinter = contract_of(lambda: TensorPrinter(["cost"]))


class StepReader(Callback):
    """Reads the variable after each step."""

    def __init__(self):
        self.values = []

    def _trigger_step(self):
        self.values.append(int(self.trainer.sess.run(tf.train.get_global_step())))


def test_each_step_is_counted_once_however_many_runs_there_are_in_it_and_outside():
    class ThreeRuns(MiniTrainer):
        def run_step(self):
            for _ in range(3):
                self.hooked_sess.run(self.train_op)

    class Running(StepReader):
        def _before_train(self):
            self.trainer.hooked_sess.run([])

        def _trigger(self):
            self.trainer.hooked_sess.run([])

    reader = Running()
    ThreeRuns([reader], max_epoch=2).train()
    assert reader.values == [1, 2, 3, 4]


def test_a_run_that_continues_logs_where_it_starts(capsys):
    reader = StepReader()
    MiniTrainer([reader], init_step=40).train()
    assert log_lines(capsys) == ["Start training with global_step=40"]
    assert reader.values == [41, 42]


def test_there_is_a_bar_for_each_epoch(capsys):
    MiniTrainer([ProgressBar()], steps_per_epoch=7, max_epoch=2).train()
    shown = capsys.readouterr().err
    assert shown.count("|7/7[") == shown.count("100%|") == 2


def test_a_bar_moves_when_it_is_time_and_what_is_shown_behind_it_is_computed_then(
    capsys, monkeypatch
):
    def compute():
        computed.append(1)
        return np.float32(3.14159)

    class Looks(Callback):
        seen = []

        def _trigger_step(self):
            self.seen.append((bar._bar.n, bar._bar.total, len(computed)))
            clock.advance(steps._BAR_SECONDS / 2 + 0.001)

    tf.identity(tf.py_func(compute, [], tf.float32), name="pi")
    computed, clock, bar, looks = [], FakeClock(5.0), ProgressBar(["pi"]), Looks()
    monkeypatch.setattr(steps, "time", types.SimpleNamespace(monotonic=clock))
    MiniTrainer([bar, looks], steps_per_epoch=5).train()
    assert looks.seen == [(1, 5, 1), (1, 5, 1), (3, 5, 2), (3, 5, 2), (5, 5, 3)]
    assert "pi=3.142" in capsys.readouterr().err


def test_a_bar_that_was_interrupted_is_closed_and_has_the_steps_that_were_done(capsys):
    class Failing(MiniTrainer):
        def run_step(self):
            if self.local_step == 4:
                raise ValueError("bad step")
            super().run_step()

    bar = ProgressBar()
    with pytest.raises(ValueError, match="bad step"):
        Failing([bar], steps_per_epoch=7).train()
    shown = capsys.readouterr().err
    assert "|4/7[" in shown and "|5/7[" not in shown
    assert bar._bar is None


def test_a_bar_that_was_off_for_some_steps_has_all_of_them(capsys):
    enabled = EnableCallbackIf(ProgressBar(), lambda cb: cb.local_step not in (2, 3))
    MiniTrainer([enabled], steps_per_epoch=6).train()
    assert "|6/6[" in capsys.readouterr().err


def test_tensors_are_printed_in_each_step(capsys):
    tf.constant(3, name="three")
    MiniTrainer([TensorPrinter(["three", "three:0"])]).train()
    assert log_lines(capsys) == ["three: 3", "three:0: 3"] * 2


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_name_of_a_variable_is_that_of_its_value(use_resource, capsys):
    tf.get_variable("w", initializer=[2.5, 0.5], use_resource=use_resource)
    names = ["w", "w:0"]
    MiniTrainer([TensorPrinter(names)], steps_per_epoch=1).train()
    assert log_lines(capsys) == ["w: [2.5 0.5]", "w:0: [2.5 0.5]"]


def test_a_run_that_takes_too_long_fails():
    queue = tf.FIFOQueue(1, [tf.float32])
    with pytest.raises(tf.errors.DeadlineExceededError):
        MiniTrainer([SessionRunTimeout(50)], train_op=queue.dequeue()).train()
