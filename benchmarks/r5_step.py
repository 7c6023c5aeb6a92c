"""R5: a trainer's step with the default callbacks against the bare callable, on constant input.

    python benchmarks/r5_step.py [--pairs 7] [--steps 4000]

One weight is trained on two numbers that never change, so that a step costs what is around it. A
trainer runs an epoch; then the same session runs the same op as often through `make_callable`
("bare"), and then the op together with the step counter and the moving average of the cost, grouped
as one op ("grouped"): what the step has to compute whatever runs it. So they take turns. Printed in
microseconds a step; the result is the median of the differences of the pairs.
"""

import argparse
import statistics
import tempfile
import time

import numpy as np
from _report import Measured, report, say

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import TensorInput
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.train import SimpleTrainer, TrainConfig
from tensorpack.utils import logger

LINE = "{:8.1f} {:8.1f} {:8.1f} {:10.1f} {:13.1f}"
HEAD = "    bare  grouped  trainer  over bare  over grouped"


class OneWeight(ModelDesc):
    """Learns a factor of two numbers."""

    def inputs(self):
        """Two numbers."""
        return [tf.TensorSpec([2], tf.float32, "x")]

    def build_graph(self, x):
        """The squared distance of their multiples from one."""
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        cost = tf.reduce_mean(tf.square(weight * x - 1), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        """The cheapest."""
        return tf.train.GradientDescentOptimizer(0.01)


class Turns(Callback):
    """Times each epoch of the trainer and, after it, as many bare steps.

    Args:
      rows: to be filled with (bare, grouped, trainer), in microseconds a step.
    """

    def __init__(self, rows):
        self._rows = rows

    def _setup_graph(self):
        counted = tf.assign_add(tf.train.get_global_step(), 0)
        averages = tf.get_collection("MOVING_SUMMARY_OPS")
        self._grouped = tf.group(self.trainer.train_op, counted, *averages)

    def _before_train(self):
        self._bare = self.trainer.sess.make_callable(self.trainer.train_op)
        self._group = self.trainer.sess.make_callable(self._grouped)

    def _before_epoch(self):
        self._start = time.perf_counter()

    def _after_epoch(self):
        steps = self.trainer.steps_per_epoch
        ours = (time.perf_counter() - self._start) / steps * 1e6
        self._rows.append((timed(self._bare, steps), timed(self._group, steps), ours))


def timed(call, steps):
    """Microseconds of one call, on the average."""
    start = time.perf_counter()
    for _ in range(steps):
        call()
    return (time.perf_counter() - start) / steps * 1e6


def main():
    """Measures and prints a row a pair, then the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4000, help="of one measurement")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        logger.set_logger_dir(folder + "/log", "d")
        config = TrainConfig(
            model=OneWeight(),
            data=TensorInput(lambda: [tf.constant(np.float32([1, 2]))]),
            callbacks=[Turns(rows)],
            steps_per_epoch=args.steps,
            max_epoch=args.pairs + 1,
        )
        SimpleTrainer(config).train()
    say(f"TensorFlow {tf.__version__}, microseconds a step\n{HEAD}")
    rows = [(bare, group, ours, ours - bare, ours - group) for bare, group, ours in rows[1:]]
    for row in rows:
        say(LINE.format(*row))
    bare, group, ours, over_bare, over_group = medians = list(map(statistics.median, zip(*rows)))
    say(LINE.format(*medians) + "  median")
    report(
        Measured("R5", "step over bare callable", over_bare, "us", "<= 20", f"bare {bare:.1f} us"),
        Measured("R5", "step over grouped op", over_group, "us", "", f"grouped {group:.1f} us"),
    )


if __name__ == "__main__":
    main()
