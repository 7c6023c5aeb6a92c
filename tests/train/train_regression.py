"""A small supervised run for `test_exact.py`: through a queue, resumed if it can be."""

import argparse
import time

import numpy as np

from tensorpack.callbacks import ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFlow, DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import FullyConnected
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.optimizer import AccumGradOptimizer
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils import fix_rng_seed, logger
from tests.faults.marks import mark


class Regression(ModelDesc):
    """Learns a vector of three from one of eight, by a hidden layer; Adam at each third step."""

    def inputs(self):
        return [
            tf.TensorSpec((None, 8), tf.float32, "x"),
            tf.TensorSpec((None, 3), tf.float32, "y"),
        ]

    def build_graph(self, x, y):
        hidden = FullyConnected("hidden", x, 32, activation=tf.nn.relu)
        return tf.reduce_mean(tf.square(FullyConnected("out", hidden, 3) - y), name="cost")

    def optimizer(self):
        # A rate that depends on the global step shows whether that is read in a fixed order.
        rate = tf.train.exponential_decay(0.05, get_global_step_var(), 10, 0.9)
        return AccumGradOptimizer(tf.train.AdamOptimizer(rate), 3)


class Forgetful(DataFlow):
    """Hands on a flow, and keeps no state of its own or of that flow."""

    def __init__(self, ds):
        self._ds = ds

    def reset_state(self):
        self._ds.reset_state()

    def __iter__(self):
        for datapoint in self._ds:  # noqa: UP028
            yield datapoint


class SlowSaver(ModelSaver):
    """Says when it saves, and takes its time, so that it can be killed in the middle."""

    def _write(self, *args):
        mark("save")
        super()._write(*args)
        time.sleep(0.05)


def make_flow(stateful):
    """Returns batches of five of 33 examples, so that passes and epochs end at different times."""
    rng = np.random.RandomState(3)
    examples = [[rng.rand(8).astype(np.float32), rng.rand(3).astype(np.float32)] for _ in range(33)]
    flow = BatchData(DataFromList(examples), 5, remainder=True)
    return flow if stateful else Forgetful(flow)


def main():
    """Trains to the end, from where an earlier run stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("log_dir")
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--ahead", action="store_true", help="not in lockstep")
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    fix_rng_seed(7)
    logger.set_logger_dir(args.log_dir, "keep")
    config = TrainConfig(
        dataflow=make_flow(not args.stateless),
        model=Regression(),
        callbacks=[SlowSaver()],
        steps_per_epoch=100,
        max_epoch=args.epochs,
        resume="auto",
        deterministic=True,
    )
    trainer = QueueInputTrainer(config)
    if args.ahead:
        config.deterministic = False
    trainer.train()


if __name__ == "__main__":
    main()
