import sys

import numpy as np
import pytest

from tensorpack.callbacks import (
    HookToCallback,
    TFLocalCLIDebugHook,
)
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer
from tests.contracts.callback import CallbackContract
from tests.helpers import CallbackSpy


class SpyHook(tf.train.SessionRunHook):
    def __init__(self):
        self.tape = []

    def begin(self):
        self.step = tf.identity(tf.train.get_global_step(), name="seen")
        self.tape.append("begin")

    def after_create_session(self, session, coord):
        self.tape.append(("created", session, coord))

    def before_run(self, run_context):
        return tf.train.SessionRunArgs({"step": self.step})

    def after_run(self, run_context, run_values):
        self.tape.append(sorted(run_values.results))

    def end(self, session):
        self.tape.append(("end", session))


class TestHookToCallback(CallbackContract):
    def make_callback(self):
        return HookToCallback(SpyHook())

    def test_its_ops_are_in_its_own_scope_and_it_does_not_keep_the_trainer(self, trainer):
        trainer.callbacks.setup_graph(trainer)
        assert trainer.graph.get_operation_by_name("seen")  # hooks have no scope


def test_a_hook_is_called_as_in_a_session_of_tensorflow():
    hook = SpyHook()
    trainer = MiniTrainer([HookToCallback(hook)]).train()
    assert hook.tape == [
        "begin",
        ("created", trainer.sess, None),
        ["step"],
        ["step"],
        ("end", trainer.sess),
    ]


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="got CallbackSpy"):
        HookToCallback(CallbackSpy())


def test_the_debugger_of_tensorflow_sees_each_run(monkeypatch, capsys):
    commands = ["run", "lt", "run", "run"]
    monkeypatch.setattr("builtins.input", lambda *prompt: commands.pop(0))
    debugger = TFLocalCLIDebugHook(ui_type="readline")
    debugger.add_tensor_filter("large", lambda datum, tensor: np.max(tensor) > 1000)
    value = tf.add(tf.random_uniform([]), 1.0, name="debugged")
    MiniTrainer([debugger], train_op=value.op).train()
    assert commands == []
    output = capsys.readouterr().out
    assert "run-end: run #2" in output and "debugged:0" in output and "* large" in output


def test_a_tensorflow_without_its_debugger_says_what_else_there_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow.python.debug", None)
    with pytest.raises(RuntimeError, match="has no tfdbg for sessions. CheckNumerics finds"):
        TFLocalCLIDebugHook()
