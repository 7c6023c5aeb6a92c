"""What the towers of a run share: the data of a step, statistics of layers, the scalars."""

import numpy as np
import pytest

from tensorpack.callbacks import (
    DataParallelInferenceRunner,
    MergeAllSummaries,
    MovingAverageSummary,
    ProcessTensors,
    RunUpdateOps,
    ScalarStats,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import DataParallelFeedInput, QueueInput, StagingInput
from tensorpack.models import BatchNorm, FullyConnected
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    SimpleTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)
from tests import helpers
from tests.tiers import first_fast
from tests.train.test_multigpu import Result

STEPS, BATCH = 5, 6  # of all towers together
NAMES = ["fc/W", "bn/gamma", "bn/beta", "bn/mean/EMA", "bn/variance/EMA", "out/W"]
CPUS = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)


class Normalized(ModelDesc):
    """A layer, the statistics of its outputs, and another layer."""

    def __init__(self, sync_statistics="nccl"):
        self._sync_statistics = sync_statistics

    def inputs(self):
        return [tf.TensorSpec([None, 3], tf.float32, "x"), tf.TensorSpec([None], tf.float32, "y")]

    def build_graph(self, x, y):
        start = tf.constant_initializer(np.cos(np.arange(12)))
        hidden = FullyConnected("fc", x, 4, use_bias=False, kernel_initializer=start)
        hidden = tf.tanh(BatchNorm("bn", hidden, sync_statistics=self._sync_statistics))
        start = tf.constant_initializer(np.sin(np.arange(4)))
        predicted = FullyConnected("out", hidden, 1, kernel_initializer=start)[:, 0]
        tf.reduce_sum(x[:, 0], name="number")
        tf.summary.scalar("average", tf.reduce_mean(x))
        cost = tf.reduce_mean(tf.square(predicted - y), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.MomentumOptimizer(0.1, 0.9)


def batches(size):
    """The same examples, in batches of one size or another."""
    rng = np.random.RandomState(3)
    x = rng.randn(STEPS * BATCH, 3).astype(np.float32)
    y = rng.randn(STEPS * BATCH).astype(np.float32)
    parts = range(0, len(x), size)
    return DataFromList([[x[at : at + size], y[at : at + size]] for at in parts], shuffle=False)


def train(make_trainer, towers, make_input=QueueInput, callbacks=(), **options):
    result = Result()
    with tf.Graph().as_default():
        options = {
            "data": make_input(batches(BATCH // towers)),
            "model": Normalized(),
            "steps_per_epoch": STEPS,
            "nr_tower": towers,
            "session_config": CPUS,
            **options,
        }
        trainer = make_trainer(helpers.config([RunUpdateOps(), result, *callbacks], **options))
        trainer.train()
    return trainer, result.saved


def names_of(towers):
    return [f"tower{i}" for i in range(towers)]


INPUTS = {
    "queue": lambda towers: QueueInput,
    "staged": lambda towers: lambda flow: StagingInput(QueueInput(flow), nr_stage=2),
    "fed": lambda towers: lambda flow: DataParallelFeedInput(flow, names_of(towers)),
}


@pytest.mark.parametrize(
    "trainer, towers, data",
    first_fast(
        [
            (SyncMultiGPUTrainerParameterServer, 2, "queue"),
            (SyncMultiGPUTrainerReplicated, 3, "fed"),
            (SyncMultiGPUTrainerReplicated, 2, "staged"),
        ]
    ),
)
def test_layers_with_the_statistics_of_all_towers_train_as_one(trainer, towers, data):
    _, expected = train(SimpleTrainer, 1)
    _, found = train(trainer, towers, INPUTS[data](towers))
    for name in NAMES:
        np.testing.assert_allclose(found[name], expected[name], 1e-5, 1e-5, err_msg=name)


@pytest.mark.parametrize(
    "trainer",
    first_fast(
        [AsyncMultiGPUTrainer, SyncMultiGPUTrainerReplicated, SyncMultiGPUTrainerParameterServer]
    ),
)
def test_scalars_and_names_are_those_of_the_first_tower(trainer):
    seen = []
    callbacks = [
        MovingAverageSummary(),
        MergeAllSummaries(),
        ProcessTensors(["number"], seen.append),
        DataParallelInferenceRunner(batches(2), ScalarStats("cost"), [1, 2]),
    ]
    data = INPUTS["fed"](2)
    run, _ = train(trainer, 2, data, callbacks)
    assert run.monitors.state_dict().keys() == {"average", "cost", "validation_cost"}
    first = [float(x[:, 0].sum()) for x, _ in batches(BATCH // 2)][::2]
    np.testing.assert_allclose(seen, first, rtol=1e-5)
    kinds = [(each.ns_name, each["cost"].device[-5:]) for each in run.towers]
    assert kinds == [
        ("tower0", "CPU:0"),
        ("tower1", "CPU:1"),
        ("InferenceTower0", "CPU:1"),
        ("InferenceTower1", "CPU:2"),
    ]
