"""R6: a trainer's step through `QueueInput` against a bare queue loop.

    python benchmarks/r6_queue_step.py [--pairs 7] [--steps 4000]

The bare loop is a `FIFOQueue` of 50 that a plain Python thread fills with one small array, and a
callable that dequeues and updates one weight; it has a graph and a session of its own in the same
process. A trainer runs an epoch of the same update; then the bare loop as many steps, so they take
turns, and who has no turn waits at its full queue. Printed in microseconds a step; the result is
the median of the ratios of the pairs.
"""

import argparse
import statistics
import tempfile
import threading
import time

import numpy as np
from _report import Measured, report, say
from r5_step import OneWeight, timed

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils import logger

LINE = "{:8.1f} {:8.1f} {:6.3f}"
HEAD = "    bare  trainer  ratio"
DATA = np.float32([1, 2])


class Same(DataFlow):
    """One small array, again and again."""

    def __iter__(self):
        while True:
            yield [DATA]

    def __len__(self):
        return 1000000


class BareLoop:
    """The queue, its thread, and the callable; a `with` block owns the thread."""

    def __enter__(self):
        with tf.Graph().as_default():
            queue = tf.FIFOQueue(50, [tf.float32])
            fed = tf.placeholder(tf.float32, [2])
            enqueue, self._closing = queue.enqueue([fed]), queue.close(True)
            x = queue.dequeue()
            x.set_shape([2])
            weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
            cost = tf.reduce_mean(tf.square(weight * x - 1))
            step = tf.train.GradientDescentOptimizer(0.01).minimize(cost)
            start = tf.global_variables_initializer()
            self._sess = tf.Session(config=get_default_sess_config())
        self._sess.run(start)
        self.step = self._sess.make_callable(step)
        fill = self._sess.make_callable(enqueue, feed_list=[fed])
        self._thread = threading.Thread(target=self._fill, args=(fill,))
        self._thread.start()
        return self

    @staticmethod
    def _fill(fill):
        try:
            while True:
                fill(DATA)
        except tf.errors.CancelledError:
            pass

    def __exit__(self, *exc_info):
        self._sess.run(self._closing)
        self._thread.join()
        self._sess.close()


class Turns(Callback):
    """Times each epoch of the trainer and, after it, as many bare steps.

    Args:
      bare: the other side's step.
      rows: to be filled with (bare, trainer, ratio), in microseconds a step.
    """

    def __init__(self, bare, rows):
        self._bare = bare
        self._rows = rows

    def _before_epoch(self):
        self._start = time.perf_counter()

    def _after_epoch(self):
        steps = self.trainer.steps_per_epoch
        ours = (time.perf_counter() - self._start) / steps * 1e6
        time.sleep(0.05)  # until our queue is full
        bare = timed(self._bare, steps)
        time.sleep(0.05)
        self._rows.append((bare, ours, ours / bare))


def main():
    """Measures and prints a row a pair, then the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4000, help="of one measurement")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, BareLoop() as bare:
        logger.set_logger_dir(folder + "/log", "d")
        config = TrainConfig(
            model=OneWeight(),
            dataflow=Same(),
            callbacks=[Turns(bare.step, rows)],
            steps_per_epoch=args.steps,
            max_epoch=args.pairs + 1,
        )
        QueueInputTrainer(config).train()
    say(f"TensorFlow {tf.__version__}, microseconds a step\n{HEAD}")
    for row in rows[1:]:  # the first was to warm up
        say(LINE.format(*row))
    bare, _, ratio = medians = list(map(statistics.median, zip(*rows[1:])))
    say(LINE.format(*medians) + "  median")
    label, peer = "step through QueueInput / bare queue loop", f"bare loop {bare:.0f} us"
    report(Measured("R6", label, ratio, target="<= 1.15", peer=peer))


if __name__ == "__main__":
    main()
