"""R5 and R6: what a trainer adds to the step of a tiny graph, without input and with a queue.

One weight is trained on two numbers, so that a step costs what is around it. A trainer runs an
epoch, then a bare callable as many steps, so that they take turns; in microseconds a step.
"""

import tempfile
import threading
import time
from functools import partial

import numpy as np
from _contest import Contest, difference

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import TensorInput
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.train import QueueInputTrainer, SimpleTrainer, TrainConfig
from tensorpack.utils import logger

DATA = np.float32([1, 2])


class OneWeight(ModelDesc):
    """Learns a factor of two numbers, by the squared distance of their multiples from one."""

    def inputs(self):
        return [tf.TensorSpec([2], tf.float32, "x")]

    def build_graph(self, x):
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        cost = tf.reduce_mean(tf.square(weight * x - 1), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(0.01)


class Turns(Callback):
    """Times each epoch of the trainer and, after it, as many bare steps.

    Args:
      make: returns the bare steps, given the trainer: callables, or `(op, *placeholders)`.
      pause: seconds before and after the bare steps.

    Attributes:
      rows: (trainer, *bare) of each epoch, in microseconds a step; the first is to warm up.
    """

    def __init__(self, make, pause=0.0):
        self._make, self._pause = make, pause
        self.rows = []

    def _setup_graph(self):
        self._steps = self._make(self.trainer)

    def _before_train(self):
        self._calls = [step if callable(step) else self._bare(*step) for step in self._steps]

    def _bare(self, op, *feeds):
        call = self.trainer.sess.make_callable(op, feed_list=list(feeds) or None)
        return partial(call, *[DATA] * len(feeds))

    def _before_epoch(self):
        self._start = time.perf_counter()

    def _after_epoch(self):
        steps = self.trainer.steps_per_epoch
        ours = (time.perf_counter() - self._start) / steps * 1e6
        time.sleep(self._pause)
        self.rows.append((ours, *(timed(call, steps) for call in self._calls)))
        time.sleep(self._pause)


def timed(call, steps):
    """Microseconds of one call, on the average."""
    start = time.perf_counter()
    for _ in range(steps):
        call()
    return (time.perf_counter() - start) / steps * 1e6


def train(trainer, turns, pairs, steps, **config):
    """Trains, and returns the columns of `Turns.rows`."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        logger.set_logger_dir(folder + "/log", "d")
        config = TrainConfig(
            model=OneWeight(),
            callbacks=[turns],
            steps_per_epoch=steps,
            max_epoch=pairs + 1,
            **config,
        )
        trainer(config).train()
    return list(zip(*turns.rows[1:]))


def step(pairs=7, steps=4000):
    """A trainer's step with the default callbacks, on constant input and fed, beyond the bare call.

    The same session runs the same op through `make_callable`, and then this op together with the
    step counter and the moving average of the cost, grouped as one op: what the step has to compute
    whatever runs it.
    """

    def make(trainer):
        counted = tf.assign_add(tf.train.get_global_step(), 0)
        averages = tf.get_collection("MOVING_SUMMARY_OPS")
        return [(trainer.train_op,), (tf.group(trainer.train_op, counted, *averages),)]

    data = TensorInput(lambda: [tf.constant(DATA)])
    ours, bare, group = train(SimpleTrainer, Turns(make), pairs, steps, data=data)
    kind = {"unit": "us", "judge": difference}
    sides = {"trainer": ours, "bare": bare}
    yield Contest("step over bare callable", sides, target="<= 20", **kind)
    yield Contest("step over grouped op", {"trainer": ours, "grouped": group}, **kind)
    turns = Turns(lambda trainer: [(trainer.train_op, *trainer.config.data.get_input_tensors())])
    sides = dict(
        zip(("trainer", "bare"), train(SimpleTrainer, turns, pairs, steps, dataflow=Same()))
    )
    yield Contest("step through FeedInput over bare callable", sides, target="<= 20", **kind)


class Same(DataFlow):
    """One small array, again and again."""

    def __iter__(self):
        while True:
            yield [DATA]


class BareLoop:
    """A `FIFOQueue` of 50 that a thread fills, and a callable that dequeues and updates one weight.

    A `with` block owns the thread and the session.
    """

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


def queue_step(pairs=7, steps=4000):
    """A trainer's step through `QueueInput` against a bare loop around a queue.

    The loop has a graph and a session of its own in the same process; who has no turn waits at its
    full queue.
    """
    with BareLoop() as bare:
        turns = Turns(lambda trainer: [bare.step], pause=0.05)  # until the queue is full
        times = train(QueueInputTrainer, turns, pairs, steps, dataflow=Same())
    sides = dict(zip(("trainer", "bare loop"), times))
    what = "step through QueueInput / bare queue loop"
    yield Contest(what, sides, unit="us", target="<= 1.15")
