"""What is looked at for numbers that are not finite; row 24 of the matrix has whole runs."""

import numpy as np
import pytest

from tensorpack.callbacks import (
    MergeAllSummaries,
    MovingAverageSummary,
    StopIfNonFinite,
)
from tensorpack.callbacks.finite import FiniteCheck
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList, RepeatedData
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.train import SimpleTrainer
from tests.callbacks.driver import MiniTrainer
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel, config

TestStopIfNonFinite = contract_of(lambda: StopIfNonFinite(["cost"]))


def test_only_scalars_can_be_looked_at():
    tf.zeros([2], name="pair")
    with pytest.raises(ValueError, match="pair:0 has shape"):
        MiniTrainer([StopIfNonFinite(["pair"])]).train()


def variable(name, value, **options):
    """A variable with that initial value."""
    return tf.get_variable(name, initializer=tf.constant(value), **options)


NAN, INF = np.nan, np.inf
LARGE = {"one": np.full([3, 2], np.finfo("f4").max), "two": [np.finfo("f8").max] * 4}


@pytest.mark.parametrize(
    "values, bad",
    [
        ({}, None),
        (LARGE, None),
        *[({"one": [[0, 0], [0, number], [0, 0]]}, "one") for number in (NAN, INF, -INF)],
        ({"two": [0, 0, 0, NAN]}, "two"),
        ({"half": INF}, "half"),
        ({"one": np.full([3, 2], NAN), "two": [NAN] * 4}, "one"),
    ],
)
def test_the_first_variable_that_is_not_finite_is_named(values, bad):
    weights = [
        variable("one", np.zeros([3, 2], np.float32)),
        variable("two", np.zeros([4], np.float64), use_resource=True),
        variable("half", np.float16(0)),
        variable("count", np.int64(1)),
        variable("none", np.zeros([0], np.float32)),
    ]
    check = FiniteCheck({weight.op.name: weight for weight in weights})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for weight in weights:
            if weight.op.name in values:
                sess.run(tf.assign(weight, values[weight.op.name]))
        assert check.first_bad(sess) == bad


def test_the_check_can_be_made_in_a_device_scope():
    with tf.device("/cpu:0"):
        weight = variable("weight", np.float32(0))
    with tf.device("/gpu:7"):
        check = FiniteCheck({"weight": weight})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert check.first_bad(sess) is None


def test_a_bad_average_of_a_summary_is_not_looked_at():
    cost = tf.placeholder(tf.float32, [], name="cost")
    add_moving_summary(cost)
    weight = variable("w", np.float32(0))
    check = FiniteCheck({var.op.name: var for var in [*tf.global_variables(), weight]})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.get_collection("MOVING_SUMMARY_OPS"), {cost: np.nan})
        assert check.first_bad(sess) is None
        sess.run(tf.assign(tf.trainable_variables()[0], np.nan))
        assert check.first_bad(sess) == "w"


class Summing(TinyModel):
    def build_graph(self, x, y):
        cost = super().build_graph(x, y)
        add_moving_summary(tf.identity(cost, name="mine"))
        return cost


@pytest.mark.parametrize("model, names", [(TinyModel, {"cost"}), (Summing, {"mine"})])
def test_a_model_without_a_summary_shows_its_cost(model, names):
    rows = DataFromList([[np.ones(1, np.float32), np.float32([i])] for i in (1, 3)], shuffle=False)
    extra = [MovingAverageSummary(), MergeAllSummaries()]
    options = {"model": model(0.0), "dataflow": RepeatedData(rows, -1), "max_epoch": 2}
    trainer = SimpleTrainer(config(extra, **options))
    trainer.train()
    assert set(trainer.monitors._history) == names
    if "cost" in names:
        assert trainer.monitors.get_history("cost") == [(2, 5.0), (4, 5.0)]  # the mean of 1 and 9
