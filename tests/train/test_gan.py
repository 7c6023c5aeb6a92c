"""Trainers of users with two optimizers, as those of GANs, in the spelling of 2017."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import InputDesc, ModelDesc
from tensorpack.input_source import QueueInput
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import (
    LeastLoadedDeviceSetter,
    MultiGPUTrainerBase,
    TrainConfig,
)
from tensorpack.train.simple import FeedfreeTrainerBase
from tests import helpers
from tests.tiers import first_fast

DEVICES = ["/device:CPU:0", "/device:CPU:1"]


class Players:
    """A generator that shifts zeros to the mean of the data, and a linear critic against it."""

    def build_players(self, real):
        with tf.variable_scope("gen"):
            shift = tf.get_variable("shift", [], initializer=tf.zeros_initializer())
        fake = tf.add(tf.zeros_like(real), shift, name="fake")
        with tf.variable_scope("critic"):
            slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
        difference = tf.reduce_mean(real - fake)
        self.d_loss = tf.square(slope) - slope * difference  # at its best the half of it
        self.g_loss = -slope * tf.reduce_mean(fake)
        self.g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "gen")
        self.d_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "critic")

    def minimize_means(self, costs, optimizer):
        """Minimises the means of the costs of several towers."""
        self.d_loss, self.g_loss = (tf.add_n(each) / len(costs) for each in zip(*costs))
        return self.minimize(optimizer)

    def minimize(self, optimizer):
        with tf.name_scope("optimize"):
            g_min = optimizer.minimize(self.g_loss, var_list=self.g_vars, name="g_op")
            with tf.control_dependencies([g_min]):
                return optimizer.minimize(self.d_loss, var_list=self.d_vars, name="d_op")


class ModelOf2017(Players, ModelDesc):
    def _get_inputs(self):
        return [InputDesc(tf.float32, (None,), "real")]

    def _build_graph(self, inputs):
        self.build_players(inputs[0])

    def _get_optimizer(self):
        return tf.train.GradientDescentOptimizer(0.3)


class TrainerOf2017(FeedfreeTrainerBase):
    def __init__(self, config):
        self._input_source = QueueInput(config.dataflow)
        super().__init__(config)

    def _setup(self):
        super()._setup()
        with TowerContext("", is_training=True):
            self.model.build_graph(self._input_source)
        self.train_op = self.model.minimize(self.model.get_optimizer())


class TowersOf2017(TrainerOf2017, MultiGPUTrainerBase):
    """Two towers that share their variables, which are updated by the mean of their costs."""

    def _setup(self):
        FeedfreeTrainerBase._setup(self)
        devices = [LeastLoadedDeviceSetter(each, DEVICES) for each in DEVICES]

        def get_costs():
            self.model.build_graph(self._input_source)
            return self.model.d_loss, self.model.g_loss

        costs = MultiGPUTrainerBase.build_on_multi_tower(self.config.tower, get_costs, devices)
        self.train_op = self.model.minimize_means(costs, self.model.get_optimizer())


def data():
    return DataFromList([[np.float32([2.0, 4.0])], [np.float32([0.0, 6.0])]], shuffle=False)


@pytest.mark.parametrize("kind", first_fast([TrainerOf2017, TowersOf2017]))
def test_two_players_find_their_balance(kind):
    options = {"extra_callbacks": [], "monitors": [], "steps_per_epoch": 100, "max_epoch": 1}
    if kind is TowersOf2017:
        options.update(nr_tower=2, session_config=tf.ConfigProto(device_count={"CPU": 2}))
    trainer = kind(TrainConfig(dataflow=data(), model=ModelOf2017(), **options))
    found = []

    class Look(helpers.CallbackSpy):
        def _after_train(self):
            found.extend(self.trainer.sess.run(tf.trainable_variables()))

    trainer.register_callback(Look())
    trainer.train()
    assert trainer.global_step == 100
    np.testing.assert_allclose(found, [3, 0], atol=0.1)
    assert trainer.model is trainer.config.model
