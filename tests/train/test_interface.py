"""A config and a trainer are put together, whatever the trainer's class overrides."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import FakeData
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import (
    NoOpTrainer,
    QueueInputTrainer,
    SimpleTrainer,
    SingleCostTrainer,
    SyncMultiGPUTrainerReplicated,
    TrainConfig,
    launch_train_with_config,
)
from tensorpack.train.simple import apply_default_prefetch
from tests.computing import compiled
from tests.helpers import CallbackSpy
from tests.tiers import first_fast
from tests.train.test_simple import SOURCES, Deep, Nodes, config, flow


class ByHand(SingleCostTrainer):
    """Builds its tower as a subclass of 0.11 does."""

    def _setup_graph(self, input, get_cost_fn, get_opt_fn):
        with TowerContext("", is_training=True):
            grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)()
            self.train_op = get_opt_fn().apply_gradients(grads, name="mine")
        self.spy = CallbackSpy()
        return [self.spy]


class WithOwnGradients(ByHand):
    """The same with nothing of the library's."""

    def _setup_graph(self, input, get_cost_fn, get_opt_fn):
        with TowerContext("", is_training=True):
            cost = get_cost_fn(*input.get_input_tensors())
            self.train_op = get_opt_fn().minimize(cost, name="mine")
        self.spy = CallbackSpy()
        return [self.spy]


@pytest.mark.parametrize(
    "kind, source",
    first_fast(
        [
            (SimpleTrainer, FeedInput),
            (QueueInputTrainer, QueueInput),
            (ByHand, QueueInput),
            (WithOwnGradients, QueueInput),
        ],
        2,
    ),
)
def test_a_config_and_a_trainer_are_launched(kind, source):
    look, options = config(dataflow=flow())
    trainer = kind()
    launch_train_with_config(options, trainer)
    assert trainer.global_step == 100 and trainer.model is options.model
    assert type(options.data) is source
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)
    if isinstance(trainer, ByHand):
        assert trainer.train_op.name == "mine" and "after_train" in trainer.spy.tape
        assert [each.ns_name for each in trainer.towers.training()] == [""]


def test_a_trainer_without_steps_builds_the_model_and_does_not_train():
    look, options = config(dataflow=flow())
    trainer = NoOpTrainer()
    launch_train_with_config(options, trainer)
    assert look.values == [0, 0] and trainer.train_op is not None


def test_what_cannot_be_launched():
    _, options = config(dataflow=flow())
    with pytest.raises(TypeError, match="such as SimpleTrainer"):
        launch_train_with_config(options, SimpleTrainer)
    with pytest.raises(ValueError, match="needs a model"):
        launch_train_with_config(TrainConfig(dataflow=flow()), SimpleTrainer())
    with pytest.raises(NotImplementedError, match=r"must override _setup_graph\(\)"):
        launch_train_with_config(options, SingleCostTrainer())


@pytest.mark.parametrize(
    "switch, value, argument, passed",
    first_fast(
        [
            ("COLOCATE_GRADIENTS_WITH_OPS", False, "colocate_gradients_with_ops", False),
            ("GATE_GRADIENTS", False, "gate_gradients", tf.train.Optimizer.GATE_NONE),
            ("AGGREGATION_METHOD", 2, "aggregation_method", 2),
        ]
    ),
)
def test_switches_of_a_class_reach_the_optimizer(switch, value, argument, passed):
    seen = []

    class Optimizer(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, *args, **kwargs):
            seen.append(kwargs[argument])
            return super().compute_gradients(*args, **kwargs)

    for kind in SimpleTrainer, type("Switched", (SimpleTrainer,), {switch: value}):
        with tf.Graph().as_default():
            _, options = config(dataflow=flow(), steps_per_epoch=1)
            options.model.optimizer = lambda: Optimizer(0.1)
            launch_train_with_config(options, kind())
    assert seen[0] != seen[1] == passed


@pytest.mark.slow
def test_a_class_that_asks_for_xla_gets_it():
    nodes = Nodes()
    _, options = config(model=Deep(), steps_per_epoch=1, **SOURCES["tensors"]())
    options.callbacks.append(nodes)
    launch_train_with_config(options, type("Compiled", (SimpleTrainer,), {"XLA_COMPILE": True})())
    for each in nodes.nodes:
        assert compiled(each)


def test_the_input_that_a_trainer_makes_of_a_dataflow():
    ds = FakeData([[2]], 1)
    assert type(apply_default_prefetch(ds, SimpleTrainer())) is FeedInput
    for trainer in QueueInputTrainer(), SyncMultiGPUTrainerReplicated(2):
        source = apply_default_prefetch(ds, trainer)
        assert type(source) is QueueInput and source.ds is ds
        assert apply_default_prefetch(source, trainer) is source
