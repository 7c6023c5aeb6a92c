import io
import sys

import numpy as np
import pytest

from tensorpack.callbacks import (
    Callback,
    EnableCallbackIf,
    ProgressBar,
    SessionRunTimeout,
    TensorPrinter,
)
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_lines


class StepReader(Callback):
    """Reads the variable after each step."""

    def __init__(self):
        self.values = []

    def _trigger_step(self):
        self.values.append(int(self.trainer.sess.run(tf.train.get_global_step())))


def test_each_step_is_counted_once_however_many_runs_it_has():
    class ThreeRuns(MiniTrainer):
        def run_step(self):
            for _ in range(3):
                self.hooked_sess.run(self.train_op)

    reader = StepReader()
    ThreeRuns([reader], max_epoch=2).train()
    assert reader.values == [1, 2, 3, 4]


def test_a_run_outside_of_a_step_is_not_counted():
    class Running(StepReader):
        def _before_train(self):
            self.trainer.hooked_sess.run([])

        def _trigger(self):
            self.trainer.hooked_sess.run([])

    reader = Running()
    MiniTrainer([reader], max_epoch=2).train()
    assert reader.values == [1, 2, 3, 4]


def test_a_run_that_continues_logs_where_it_starts(capsys):
    reader = StepReader()
    MiniTrainer([reader], init_step=40).train()
    assert log_lines(capsys) == ["Start training with global_step=40"]
    assert reader.values == [41, 42]


def test_the_op_that_counts_is_at_the_root():
    trainer = MiniTrainer().train()
    assert trainer.graph.get_operation_by_name("global_step_incr").type == "NoOp"


def test_there_is_a_bar_for_each_epoch(monkeypatch):
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    MiniTrainer([ProgressBar()], steps_per_epoch=7, max_epoch=2).train()
    assert err.getvalue().count("|7/7[") == 2
    assert err.getvalue().count("100%|") == 2


def test_a_bar_that_was_interrupted_is_closed():
    bar = ProgressBar()

    class Failing(Callback):
        def _trigger_step(self):
            raise ValueError("bad step")

    with pytest.raises(ValueError, match="bad step"):
        MiniTrainer([bar, Failing()]).train()
    assert bar._bar is None


def test_a_bar_that_was_interrupted_has_the_steps_that_were_done(monkeypatch):
    class Failing(MiniTrainer):
        def run_step(self):
            if self.local_step == 4:
                raise ValueError("bad step")
            super().run_step()

    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(ValueError, match="bad step"):
        Failing([ProgressBar()], steps_per_epoch=7).train()
    assert "|4/7[" in err.getvalue() and "|5/7[" not in err.getvalue()


def test_a_bar_that_was_off_for_some_steps_has_all_of_them(monkeypatch):
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    bar = ProgressBar()
    enabled = EnableCallbackIf(bar, lambda cb: cb.local_step not in (2, 3))
    MiniTrainer([enabled], steps_per_epoch=6).train()
    assert "|6/6[" in err.getvalue()


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


@pytest.mark.parametrize("timeout", [7, 7.0, np.int64(7), np.float32(7)])
def test_a_timeout_is_any_whole_number(timeout):
    assert SessionRunTimeout(timeout)._request.options.timeout_in_ms == 7
