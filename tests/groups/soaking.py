"""A process of a group that trains for as long as it is let, and resumes whatever is there."""

import sys
import time

import numpy as np

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.train import CollectiveTrainer, DistributedReplicatedTrainer, TrainConfig
from tensorpack.utils import fix_rng_seed, logger
from tensorpack.utils.cluster import Cluster

TRAINERS = {"all-reduce": CollectiveTrainer, "servers": DistributedReplicatedTrainer}
STEPS = 10  # in an epoch


class Linear(ModelDesc):
    """Learns the weights 1, 2, 3."""

    def inputs(self):
        return [tf.TensorSpec([None, 3], tf.float32, "x")]

    def build_graph(self, x):
        weights = tf.get_variable("weights", [3, 1], initializer=tf.zeros_initializer())
        target = tf.matmul(x, tf.constant([[1.0], [2.0], [3.0]]))
        return tf.reduce_mean(tf.square(tf.matmul(x, weights) - target), name="cost")

    def optimizer(self):
        return tf.train.AdamOptimizer(0.01)


class Pause(Callback):
    """Makes steps slow enough to be hit, on each worker for itself."""

    _chief_only = False

    def __init__(self, seconds):
        self._seconds = seconds

    def _trigger_step(self):
        time.sleep(self._seconds)


def main(kind, log_dir, epochs, pause):
    """Trains with one of `TRAINERS` until that epoch."""
    cluster = Cluster.from_environment()
    fix_rng_seed(7 + cluster.index)
    logger.set_logger_dir(log_dir, "keep")
    chance = np.random.RandomState(cluster.index)
    data = [[chance.rand(8, 3).astype(np.float32)] for _ in range(17)]
    config = TrainConfig(
        model=Linear(),
        dataflow=DataFromList(data),
        callbacks=[ModelSaver(), Pause(float(pause))],
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=STEPS,
        max_epoch=int(epochs),
        resume="auto",
    )
    TRAINERS[kind](config, timeout=5.0).train()


if __name__ == "__main__":
    main(*sys.argv[1:])
