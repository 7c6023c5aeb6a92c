"""Two costs, each for variables of its own, in the trainers of one cost."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.tfutils import AccumGradOptimizer, OptimizerPerScope, separate_costs
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    CollectiveTrainer,
    SimpleTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)
from tests.tiers import first_fast
from tests.train.test_multigpu import train

STEPS, BATCH = 6, 4  # of all towers together
START = np.float32([[0.5, -0.25], [0.125, 1.0], [0.75, -0.5]])


def per_scope():
    return OptimizerPerScope(
        {"gen": tf.train.AdamOptimizer(0.1), "critic": tf.train.GradientDescentOptimizer(0.2)}
    )


def accumulated():
    return AccumGradOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 2)


class Players(ModelDesc):
    """A generator that shifts rows of a table, and a linear critic of it."""

    def __init__(self, make_optimizer):
        self._make_optimizer = make_optimizer

    def inputs(self):
        return [
            tf.TensorSpec([None], tf.int32, "row"),
            tf.TensorSpec([None, 2], tf.float32, "real"),
        ]

    def build_graph(self, row, real):
        with tf.variable_scope("gen"):
            made = tf.gather(tf.get_variable("table", initializer=START), row)
        with tf.variable_scope("critic"):
            slope = tf.get_variable("slope", initializer=np.float32([1.0, -1.0]))
        difference = tf.reduce_mean(real - made, 0) * slope
        d_loss = tf.reduce_sum(tf.square(slope)) - tf.reduce_sum(difference)
        g_loss = tf.reduce_sum(difference) + tf.reduce_mean(tf.square(made))
        return separate_costs((g_loss, "gen"), (d_loss, "critic"))

    def optimizer(self):
        return self._make_optimizer()


def examples(size):
    rng = np.random.RandomState(2)
    rows, reals = rng.randint(0, 3, STEPS * BATCH), rng.randn(STEPS * BATCH, 2).astype("f")
    starts = range(0, STEPS * BATCH, size)
    points = [[rows[at : at + size].astype(np.int32), reals[at : at + size]] for at in starts]
    return DataFromList(points, shuffle=False)


def run(make_trainer, make_optimizer, towers):
    model, data = Players(make_optimizer), examples(BATCH // towers)
    saved = train(make_trainer, make_optimizer, towers, model=model, dataflow=data).saved
    return {name: value for name, value in saved.items() if not name.startswith("EMA/")}


def by_hand():
    """What the two updates are, by numpy: plain gradient descent at the same point."""
    table, slope = START.copy(), np.float32([1.0, -1.0])
    for row, real in examples(BATCH):
        made = table[row]
        of_made = -slope / BATCH + made / BATCH  # the mean is over two columns as well
        of_slope = 2 * slope - (real - made).mean(0)
        for at, each in zip(row, of_made):
            table[at] -= 0.1 * each
        slope = slope - 0.1 * of_slope
    return table, slope


def test_each_variable_is_updated_by_its_own_cost():
    saved = run(SimpleTrainer, lambda: tf.train.GradientDescentOptimizer(0.1), 1)
    table, slope = by_hand()
    np.testing.assert_allclose(saved["gen/table"], table, rtol=1e-4)
    np.testing.assert_allclose(saved["critic/slope"], slope, rtol=1e-4)


@pytest.mark.parametrize("make_optimizer", first_fast([per_scope, accumulated]))
@pytest.mark.parametrize(
    "kind",
    first_fast(
        [SyncMultiGPUTrainerParameterServer, SyncMultiGPUTrainerReplicated, CollectiveTrainer]
    ),
)
def test_towers_train_as_one(kind, make_optimizer):
    expected = run(SimpleTrainer, make_optimizer, 1)
    saved = run(kind, make_optimizer, 2)
    assert {*saved} == {*expected}
    for name, value in expected.items():
        np.testing.assert_allclose(saved[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    assert np.abs(saved["gen/table"] - START).max() > 0.05


def test_asynchronous_towers_train_too():
    saved = run(AsyncMultiGPUTrainer, per_scope, 2)
    assert np.abs(saved["gen/table"] - START).max() > 0.05
    assert np.abs(saved["critic/slope"] - [1, -1]).max() > 0.05
