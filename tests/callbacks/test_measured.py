import numpy as np
import pytest

from tensorpack.callbacks import (
    Callback,
    CallbackFactory,
    EarlyStop,
    EnableCallbackIf,
    InferenceRunner,
    MaxSaver,
    MergeAllSummaries,
    ModelSaver,
    ObjAttrParam,
    PeriodicCallback,
    PeriodicTrigger,
    ScalarStats,
    StatMonitorParamSetter,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.train import SimpleTrainer
from tests.callbacks.driver import log_directory
from tests.helpers import TinyModel, config

ROWS = [[np.ones(1, np.float32), np.ones(1, np.float32)]] * 4
NOTHING = "waits for a scalar that nothing in this run measures. .* Did you mean 'validation_cost'"


def train(tmp_path, *callbacks, epochs=5, **given):
    """Returns after how many epochs the run ended, and its error."""
    with tf.Graph().as_default(), log_directory(tmp_path):
        options = {"model": TinyModel(), "dataflow": DataFromList(ROWS * 10), "max_epoch": epochs}
        options.update(given)
        trainer = SimpleTrainer(config([*callbacks], **options))
        try:
            trainer.train()
        except RuntimeError as error:
            return trainer.global_step // 2, error
        return trainer.global_step // 2, None


def validation():
    return InferenceRunner(DataFromList(ROWS, shuffle=False), ScalarStats("cost"))


def waiting(name="val_cost"):
    return EarlyStop(name, 9)


def a_setter():
    rate = type("Rate", (), {"rate": 1.0})()
    return StatMonitorParamSetter(ObjAttrParam(rate, "rate"), "val_cost", lambda x: x, 0.1, 2)


@pytest.mark.parametrize("make", [waiting, a_setter])
def test_a_name_that_nothing_measures_is_an_error_before_the_second_epoch(make, tmp_path, capsys):
    epoch, error = train(tmp_path, make(), validation())
    assert epoch == 1
    with pytest.raises(RuntimeError, match=NOTHING):
        raise error
    assert "at the end of the run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrap",
    [
        lambda each: PeriodicTrigger(each, every_k_epochs=3),
        lambda each: EnableCallbackIf(each, lambda cb: cb.epoch_num >= 3),
    ],
)
def test_a_validation_that_has_not_been_triggered_is_waited_for(wrap, tmp_path):
    assert train(tmp_path, wrap(validation()), waiting("validation_cost")) == (5, None)
    epoch, error = train(tmp_path, wrap(validation()), waiting())
    assert epoch == 3
    with pytest.raises(RuntimeError, match=NOTHING):
        raise error


def test_what_is_never_triggered_and_measures_nothing_is_not_waited_for(tmp_path):
    saver = PeriodicTrigger(ModelSaver(), every_k_epochs=100)
    assert train(tmp_path, saver, validation(), waiting())[0] == 1


def test_the_order_of_the_callbacks_makes_no_difference(tmp_path):
    callbacks = [MaxSaver("validation_cost"), ModelSaver(), validation()]
    assert train(tmp_path, *callbacks) == (5, None)


class Late(Callback):
    def _trigger(self):
        if self.epoch_num == 4:
            self.trainer.monitors.put_scalar("late", 1.0)


def put_late(callback):
    Late._trigger(callback)


class Sometimes(ScalarStats):
    """Measures in the fourth pass only."""

    passes = 0

    def _after_inference(self):
        self.passes += 1
        return {"late": 1.0} if self.passes == 4 else {}


def inferencer():
    return InferenceRunner(DataFromList(ROWS, shuffle=False), Sometimes("cost"))


@pytest.mark.parametrize("run_alone", [False, True])
def test_summaries_of_some_epochs_are_waited_for(run_alone, tmp_path):
    class Model(TinyModel):
        def build_graph(self, *inputs):
            tf.summary.scalar("late", tf.constant(1.0))
            return super().build_graph(*inputs)

    summaries = PeriodicCallback(MergeAllSummaries(run_alone=run_alone), every_k_epochs=3)
    options = {"model": Model(), "extra_callbacks": [summaries]}
    assert train(tmp_path, waiting("late"), **options) == (5, None)


@pytest.mark.parametrize("make", [Late, lambda: CallbackFactory(trigger=put_late), inferencer])
def test_code_of_the_user_may_measure_at_any_time(make, tmp_path):
    assert train(tmp_path, make(), waiting("late")) == (5, None)
    epoch, error = train(tmp_path, make(), waiting("latte"))
    assert epoch == 5 and "did nothing in this run" in str(error)
