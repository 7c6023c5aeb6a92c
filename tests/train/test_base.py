"""The phases of a run, in order, whatever happens in them."""

import pytest

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.train import StopTraining, Trainer
from tensorpack.utils.stopping import Failed
from tests.helpers import HOOKS, CallbackSpy, config

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


def test_steps_are_counted_alike_in_the_graph_and_by_the_trainer():
    seen = []

    class Look(Callback):
        def _trigger_step(self):
            value = self.trainer.sess.run(self.trainer.counter)
            seen.append((value, get_global_step_value(), self.global_step, self.local_step))

    Counting(config([Look()], max_epoch=2)).train()
    assert seen == [(1, 1, 1, 0), (2, 2, 2, 1), (3, 3, 3, 0), (4, 4, 4, 1)]


def test_starting_epoch_and_global_step_continue():
    trainer = Counting(config(starting_epoch=3, max_epoch=3))
    trainer.setup()
    trainer.sess.run(tf.train.get_global_step().initializer)
    trainer.main_loop()
    assert (trainer.epoch_num, trainer.global_step) == (3, 2)


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


def test_the_first_error_wins():
    class Breaks(Callback):
        def _trigger_step(self):
            raise KeyError("first")

        def _after_train(self):
            raise ValueError("second")

    with pytest.raises(KeyError, match="first"):
        Counting(config([Breaks()])).train()


def test_stop_training_is_an_end_in_order():
    class Stops(Callback):
        def _trigger_step(self):
            raise StopTraining("enough")

    spy = CallbackSpy()
    Counting(config([Stops(), spy])).train()
    assert spy.tape[-2:] == ["after_run", "after_train"]


def test_a_hook_can_stop_the_training():
    class Stops(Callback):
        def _after_run(self, ctx, run_values):
            ctx.request_stop()

    trainer = Counting(config([Stops()], steps_per_epoch=10))
    trainer.train()
    assert trainer.global_step == 1


def test_a_failure_reported_by_anybody_is_raised_with_its_traceback():
    def broken():
        raise OSError("disk on fire")

    class Reports(Callback):
        def _trigger_step(self):
            try:
                broken()
            except OSError as error:
                self.trainer.stop_token.request(Failed(error, "reader"))

    with pytest.raises(OSError, match="disk on fire") as caught:
        Counting(config([Reports()])).train()
    assert "broken" in [entry.name for entry in caught.traceback]


def test_the_graph_is_finalised_before_training():
    class Adds(Callback):
        def _before_train(self):
            tf.constant(0)

    with pytest.raises(RuntimeError, match="finalized"):
        Counting(config([Adds()])).train()


def test_registered_callbacks_come_behind_those_of_the_config():
    tape = []
    trainer = Counting(config([CallbackSpy(tape, "config")]))
    trainer.register_callback([CallbackSpy(tape, "registered")])
    trainer.train()
    assert tape[:2] == ["config.setup_graph", "registered.setup_graph"]
    with pytest.raises(RuntimeError, match="only before setup_callbacks"):
        trainer.register_callback(Callback())


def test_train_without_a_config():
    spy = CallbackSpy()
    Counting().train(callbacks=[spy], steps_per_epoch=1, max_epoch=1)
    assert spy.tape.count("trigger_step") == 1
    with pytest.raises(ValueError, match="needs steps_per_epoch"):
        Counting().train()


@pytest.mark.parametrize(
    "given, named",
    [
        ({"max_epoch": 3, "starting_epoch": 2}, "starting_epoch, max_epoch"),
        ({"session_init": object()}, "session_init"),
        ({"callbacks": [], "monitors": []}, "callbacks, monitors"),
    ],
)
def test_what_belongs_into_the_config_is_refused_beside_it(given, named):
    with pytest.raises(ValueError, match=f"put {named} there"):
        Counting(config([])).train(**given)


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


def test_a_second_run_of_the_same_trainer_is_refused():
    trainer = Counting(config())
    trainer.train()
    with pytest.raises(RuntimeError, match="runs once"):
        trainer.train()


def test_takes_nothing_but_a_config():
    with pytest.raises(TypeError, match="takes a TrainConfig, got str"):
        Trainer("config")


def test_a_step_without_a_train_op():
    trainer = Trainer(config([]))
    with pytest.raises(NotImplementedError, match="nothing to run in a step: set self.train_op"):
        trainer.train()
    assert trainer.sess is None
