"""A step on two towers of each trainer against a hand-written graph of two towers.

    python benchmarks/towers_step.py [--pairs 7] [--steps 400] [--hidden 256]

Both train a network of two layers on the same two CPU devices, from tensors of the graph. The
hand-written graph adds up the gradients of two towers that share their variables, applies the mean,
and runs as a prebuilt callable. An epoch of the trainer and as many hand-written steps take turns.
Printed in microseconds a step, with the median of the ratios of the pairs.

Predicted before the first run: 1.05 for the parameter server and the asynchronous trainer, which
run the same ops, and 1.15 for the replicated one, which updates twice as many variables.
"""

import argparse
import statistics
import tempfile

from _report import say
from r5_step import timed
from r6_queue_step import Turns

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import TensorInput
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
    TrainConfig,
    launch_train_with_config,
)
from tensorpack.utils import logger

BATCH, INPUTS = 32, 64
TRAINERS = [SyncMultiGPUTrainerParameterServer, SyncMultiGPUTrainerReplicated, AsyncMultiGPUTrainer]


def batch():
    """A batch that TensorFlow does not compute ahead."""
    return tf.placeholder_with_default(tf.ones([BATCH, INPUTS]), [BATCH, INPUTS])


def cost_of(x, hidden):
    """The cost of the network on a batch."""
    first = tf.get_variable("first", [INPUTS, hidden])
    second = tf.get_variable("second", [hidden, 10])
    return tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, first)), second) - 1))


class Network(ModelDesc):
    """The network as a model."""

    def __init__(self, hidden):
        self._hidden = hidden

    def inputs(self):
        """A batch."""
        return [tf.TensorSpec([BATCH, INPUTS], tf.float32, "x")]

    def build_graph(self, x):
        """The cost."""
        return cost_of(x, self._hidden)

    def optimizer(self):
        """Momentum."""
        return tf.train.MomentumOptimizer(0.01, 0.9)


def session_config():
    """The default session, with two CPU devices."""
    config = get_default_sess_config()
    config.device_count["CPU"] = 2
    return config


class ByHand:
    """The hand-written graph and its session, which a `with` block owns."""

    def __init__(self, hidden):
        self._hidden = hidden

    def __enter__(self):
        with tf.Graph().as_default():
            optimizer, towers = tf.train.MomentumOptimizer(0.01, 0.9), []
            for i in range(2):
                with tf.device(f"/cpu:{i}"), tf.variable_scope("", reuse=i > 0):
                    towers.append(optimizer.compute_gradients(cost_of(batch(), self._hidden)))
            mean = [((a + b) * 0.5, variable) for (a, variable), (b, _) in zip(*towers)]
            step = optimizer.apply_gradients(mean)
            start = tf.global_variables_initializer()
            self._sess = tf.Session(config=session_config())
        self._sess.run(start)
        self.step = self._sess.make_callable(step)
        return self

    def __exit__(self, *exc_info):
        self._sess.close()


def measure(kind, by_hand, args):
    """Returns the medians of (by hand, trainer, ratio), in microseconds a step."""
    rows = []
    with tf.Graph().as_default():
        config = TrainConfig(
            model=Network(args.hidden),
            data=TensorInput(lambda: [batch()]),
            callbacks=[Turns(by_hand.step, rows)],
            session_config=session_config(),
            steps_per_epoch=args.steps,
            max_epoch=args.pairs + 1,
        )
        launch_train_with_config(config, kind(2))
    return list(map(statistics.median, zip(*rows[1:])))  # the first was to warm up


def main():
    """Measures and prints a row for each trainer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=400, help="of one measurement")
    parser.add_argument("--hidden", type=int, default=256, help="units of the hidden layer")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ByHand(args.hidden) as by_hand:
        logger.set_logger_dir(folder + "/log", "d")
        timed(by_hand.step, args.steps)
        rows = [(kind.__name__, measure(kind, by_hand, args)) for kind in TRAINERS]
        logger.close_logger_dir()
    say(f"TensorFlow {tf.__version__}, microseconds a step\n by hand  trainer  ratio")
    for name, row in rows:
        say("{:8.1f} {:8.1f} {:6.3f}  ".format(*row) + name)


if __name__ == "__main__":
    main()
