"""A process of a run with parameter servers: trains a linear model, and says where it is."""

import argparse
import time

import numpy as np

from tensorpack.callbacks import Callback, ModelSaver, RunUpdateOps
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import BatchNorm
from tensorpack.train import (
    DistributedReplicatedTrainer,
    DistributedTrainerParameterServer,
    TrainConfig,
)
from tensorpack.utils import fix_rng_seed, logger
from tensorpack.utils.cluster import Cluster

__all__ = ["main"]

STEPS = 10  # in an epoch


class Linear(ModelDesc):
    """Learns the weights 1, 2, 3."""

    def inputs(self):
        return [tf.TensorSpec([None, 3], tf.float32, "x")]

    def build_graph(self, x):
        x = BatchNorm("bn", x, center=False, scale=False)
        weights = tf.get_variable("weights", [3, 1], initializer=tf.zeros_initializer())
        target = tf.matmul(x, tf.constant([[1.0], [2.0], [3.0]]))
        return tf.reduce_mean(tf.square(tf.matmul(x, weights) - target), name="cost")

    def optimizer(self):
        return tf.train.MomentumOptimizer(0.05, 0.5)


class Say(Callback):
    """Prints the step and the weights after each epoch."""

    _chief_only = False

    def __init__(self, pause, setup):
        self._pause, self._setup = pause, setup

    def _setup_graph(self):
        logger.info("is set up")
        time.sleep(self._setup)
        (self._weights,) = tf.trainable_variables()

    def _trigger_step(self):
        time.sleep(self._pause)

    def _trigger_epoch(self):
        logger.info(f"step {self.global_step}")

    def _after_train(self):
        logger.info(f"ends at step {self.global_step}")


def main(*given):
    """Trains as the options say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("log_dir")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--setup", type=float, default=0.0)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--resume", default="never")
    args = parser.parse_args(given or None)
    cluster = Cluster.from_environment()
    fix_rng_seed(7 + cluster.index)
    logger.set_logger_dir(args.log_dir, "keep")
    data = [[np.random.rand(8, 3).astype(np.float32)] for _ in range(17)]
    config = TrainConfig(
        model=Linear(),
        dataflow=DataFromList(data),
        callbacks=[RunUpdateOps(), ModelSaver(), Say(args.pause, args.setup * cluster.index)],
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=STEPS,
        max_epoch=args.epochs,
        resume=args.resume,
    )
    kind = DistributedTrainerParameterServer if args.asynchronous else DistributedReplicatedTrainer
    kind(config, timeout=args.timeout).train()
    logger.info("after the training")


if __name__ == "__main__":
    main()
