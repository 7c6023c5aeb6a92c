"""The phases of a run, in order, whatever happens in them."""

import subprocess
import sys

import numpy as np
import pytest

from tensorpack.callbacks import Callback
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFromList
from tensorpack.input_source import QueueInput, TensorInput
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.train import SimpleTrainer, StopTraining, TrainConfig, Trainer
from tests.checks import ROOT
from tests.helpers import HOOKS, CallbackSpy, TinyModel, config

ONE_STEP = ["before_run", "after_run", "trigger_step"]


class Counting(Trainer):
    """Its step adds one to a variable."""

    def _setup(self):
        self.counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
        self.train_op = self.counter.assign_add(1).op


def test_transcript_of_a_run():
    spy = CallbackSpy()
    Counting(config([spy], max_epoch=2)).train()
    epoch = ["before_epoch"] + ONE_STEP * 2 + ["after_epoch", "trigger_epoch"]
    assert spy.tape == ["setup_graph", "before_train"] + epoch * 2 + ["after_train"]


@pytest.mark.parametrize("hook", HOOKS[1:-1])
def test_an_error_in_any_hook_ends_the_run_in_order(hook):
    def fail(self, *args):
        raise ValueError("broken " + hook)

    breaks, tape = type("Breaks", (Callback,), {"_" + hook: fail})(), []
    trainer = Counting(config([CallbackSpy(tape), breaks, CallbackSpy(tape, "late")]))
    with pytest.raises(ValueError, match="broken " + hook):
        trainer.train()
    assert tape.count("after_train") == 1
    assert ("late.after_train" in tape) == ("late.before_train" in tape)
    with pytest.raises(RuntimeError, match="[Cc]losed"):
        trainer.sess.run(trainer.counter)


def test_stop_training_is_an_end_in_order():
    class Stops(Callback):
        def _trigger_step(self):
            raise StopTraining("enough")

    spy = CallbackSpy()
    Counting(config([Stops(), spy])).train()
    assert spy.tape[-2:] == ["after_run", "after_train"]


def test_a_step_that_stops_the_training_is_not_counted():
    class Stops(Counting):
        def run_step(self):
            if self.global_step == 6:
                raise StopTraining
            super().run_step()

    class Look(Callback):
        def _after_train(self):
            self.seen = (self.global_step, get_global_step_value())

    look = Look()
    trainer = Stops(config([look], max_epoch=5))
    trainer.train()
    assert look.seen == (5, 5) and trainer.global_step == 5


def test_the_graph_is_finalised_before_training():
    class Adds(Callback):
        def _before_train(self):
            tf.constant(0)

    with pytest.raises(RuntimeError, match="finalized"):
        Counting(config([Adds()])).train()


def test_a_second_training_in_a_graph_is_told_what_to_do():
    Counting(config()).train()
    with pytest.raises(RuntimeError, match="earlier training has used .* tf.Graph"):
        Counting(config()).train()
    with tf.Graph().as_default():
        Counting(config()).train()


def test_registered_callbacks_come_before_those_of_the_config_unless_they_follow_them():
    class Follower(CallbackSpy):
        follows = True

    tape = []
    trainer = Counting(config([CallbackSpy(tape, "config")]))
    trainer.register_callback([Follower(tape, "follower"), CallbackSpy(tape, "registered")])
    trainer.train()
    for hook in HOOKS:
        order = [each.partition(".")[0] for each in tape if each.endswith(hook)]
        assert order[:3] == ["registered", "config", "follower"], hook
    with pytest.raises(RuntimeError, match="only before setup_callbacks"):
        trainer.register_callback(Callback())


def test_an_input_begins_when_the_callbacks_have_prepared_it(log_dir):
    class Prepared(CallbackSpy, DataFlow):
        def reset_state(self):
            self._note("reset_state")

        def __iter__(self):
            yield [[1.0], [1.0]]

    data = Prepared()
    SimpleTrainer(config([data], model=TinyModel(), data=QueueInput(data))).train()
    assert data.tape[:3] == ["setup_graph", "before_train", "reset_state"]


def test_a_trainer_without_a_config_takes_its_model_and_the_size_of_its_data():
    data = DataFromList([[np.ones(2, np.float32)] * 2] * 3)
    trainer = SimpleTrainer()
    trainer.train_with_defaults(model=TinyModel(), dataflow=data, max_epoch=1)
    assert trainer.global_step == 3


def test_the_phases_can_be_called_one_by_one():
    spy, trainer = CallbackSpy(), SimpleTrainer()
    x = tf.constant([1.0])
    source, model = TensorInput(lambda: [x, x]), TinyModel()
    signature = model.get_input_signature()
    trainer.setup_graph(signature, source, model.build_graph, model.get_optimizer)
    with pytest.raises(RuntimeError, match="after setup_callbacks"):
        Counting().initialize(NewSessionCreator(), JustCurrentSession())
    with pytest.raises(RuntimeError, match=r"after setup\(\), or setup_callbacks\(\)"):
        Counting().main_loop(2, 1, 1)
    trainer.setup_callbacks([spy], [])
    with pytest.raises(ValueError, match=r"before setup_graph\(\)"):
        trainer.initialize(NewSessionCreator(precision="fp16"), JustCurrentSession())
    trainer.initialize(NewSessionCreator(), JustCurrentSession())
    trainer.main_loop(steps_per_epoch=2, starting_epoch=3, max_epoch=4)
    assert (trainer.global_step, trainer.epoch_num) == (4, 4)
    assert spy.tape[-1] == "after_train" and spy.tape.count("trigger_step") == 4


def test_a_run_without_steps_calls_the_callbacks(log_dir):
    spy = CallbackSpy()
    Counting(TrainConfig(callbacks=[spy], steps_per_epoch=0, max_epoch=2)).train()
    assert spy.tape.count("trigger_epoch") == 2 and "trigger_step" not in spy.tape


def test_registered_monitors_get_the_scalars():
    class Keeps(MonitorBase):
        seen = ()

        def process_scalar(self, name, val):
            self.seen = (name, val)

    class Logs(Callback):
        def _trigger(self):
            self.trainer.monitors.put_scalar("mine", 3)

    monitor, trainer = Keeps(), Counting(config([Logs()]))
    with pytest.raises(TypeError, match="must be a MonitorBase, got Callback"):
        trainer.register_monitor(Callback())
    trainer.register_monitor(monitor)
    trainer.train()
    assert monitor.seen == ("mine", 3)


BUILDS_IN_ITS_CONSTRUCTOR = """
from tensorpack.compat import tfv1 as tf
from tensorpack.train import Trainer

class Builds(Trainer):
    def __init__(self):
        super().__init__()
        fed = tf.placeholder_with_default(1.0, [])
        self.total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        self.train_op = self.total.assign_add(fed).op

trainer = Builds()
trainer.train_with_defaults(monitors=[], steps_per_epoch=3, max_epoch=1)
assert trainer.global_step == 3
"""


@pytest.mark.slow
def test_a_graph_can_be_built_in_the_constructor():
    command = [sys.executable, "-c", BUILDS_IN_ITS_CONSTRUCTOR]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=str(ROOT))
    assert done.returncode == 0, done.stdout.decode()


def test_defaults_are_for_a_trainer_without_a_config():
    trainer = Counting()
    trainer.train_with_defaults(steps_per_epoch=1, max_epoch=1, monitors=[])
    assert "ProgressBar" in [str(each) for each in trainer.config.callbacks]
    with tf.Graph().as_default():
        trainer = Counting(config([]))
        with pytest.raises(ValueError, match="put extra_callbacks there"):
            trainer.train_with_defaults(extra_callbacks=[])
        trainer.train_with_defaults()
    assert trainer.global_step == 2


def test_a_step_without_a_train_op():
    trainer = Trainer(config([]))
    with pytest.raises(NotImplementedError, match="nothing to run in a step: set self.train_op"):
        trainer.train()
    assert trainer.sess is None
