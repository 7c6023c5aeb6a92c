"""Trainers of users with two optimizers, as those of GANs, in the spelling of 2017."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import InputDesc, ModelDesc
from tensorpack.input_source import QueueInput
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import LeastLoadedDeviceSetter, MultiGPUTrainerBase, TrainConfig
from tensorpack.train.simple import FeedfreeTrainerBase
from tests.tiers import first_fast
from tests.train.test_simple import LastValues

DEVICES = ["/device:CPU:0", "/device:CPU:1"]


class Players(ModelDesc):
    """A generator that shifts zeros to the mean of the data, and a linear critic against it."""

    def _get_inputs(self):
        return [InputDesc(tf.float32, (None,), "real")]

    def _build_graph(self, inputs):
        (real,) = inputs
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

    def _get_optimizer(self):
        return tf.train.GradientDescentOptimizer(0.3)

    def minimize_means(self, costs, optimizer):
        """Minimises the means of the costs of several towers."""
        self.d_loss, self.g_loss = (tf.add_n(each) / len(costs) for each in zip(*costs))
        return self.minimize(optimizer)

    def minimize(self, optimizer):
        with tf.name_scope("optimize"):
            g_min = optimizer.minimize(self.g_loss, var_list=self.g_vars, name="g_op")
            with tf.control_dependencies([g_min]):
                return optimizer.minimize(self.d_loss, var_list=self.d_vars, name="d_op")


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
    trainer = kind(TrainConfig(dataflow=data(), model=Players(), **options))
    look = LastValues()
    trainer.register_callback(look)
    trainer.train()
    assert trainer.global_step == 100 and trainer.model is trainer.config.model
    np.testing.assert_allclose(look.values, [3, 0], atol=0.1)
