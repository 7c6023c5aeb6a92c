"""R5 and R6: what a trainer adds to the step of a tiny graph, without input and with a queue.

One weight is trained on two numbers, so that a step costs what is around it. A trainer runs an
epoch, then a bare callable as many steps, so that they take turns; in microseconds a step.
"""

import contextlib
import tempfile
import threading
import time
from functools import partial

import numpy as np
from _contest import Contest, difference
from tensorflow.core.protobuf import config_pb2

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
PAUSE = 0.05  # seconds between the turns, until a queue is full


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
    """Times each epoch of the trainer and, after it, as many calls of what `make(trainer)` returns.

    In `trainer_us` and `bare_us` are microseconds a step; the first epoch is to warm up.
    """

    def __init__(self, make):
        self._make = make
        self.trainer_us, self.bare_us = [], []

    def _before_train(self):
        self._bare = self._make(self.trainer)

    def _before_epoch(self):
        self._start = time.perf_counter()

    def _after_epoch(self):
        steps = self.trainer.steps_per_epoch
        self.trainer_us.append((time.perf_counter() - self._start) / steps * 1e6)
        time.sleep(PAUSE)
        start = time.perf_counter()
        for _ in range(steps):
            self._bare()
        self.bare_us.append((time.perf_counter() - start) / steps * 1e6)
        time.sleep(PAUSE)


def train(trainer, turns, pairs, steps, **config):
    """Trains, and returns the two sides."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        logger.set_logger_dir(folder + "/log", "d")
        config.update(steps_per_epoch=steps, max_epoch=pairs + 1)
        trainer(TrainConfig(model=OneWeight(), callbacks=[turns], **config)).train()
    return {"trainer": turns.trainer_us[1:], "bare": turns.bare_us[1:]}


def step(pairs=7, steps=4000):
    """A trainer's step with the default callbacks, on constant input and fed, beyond the bare call.

    The same session runs the same op through `make_callable`; with a feed through what is below it,
    since that is `Session.run`; in one thread both do with `inter_op_parallelism_threads=-1`.
    """

    def make(trainer):
        sess, op = trainer.sess, trainer.train_op
        if not trainer.config.dataflow:
            return sess.make_callable(op)
        feeds = [tensor.name for tensor in trainer.config.data.get_input_tensors()]
        options = config_pb2.CallableOptions(target=[op.name], feed=feeds)
        return partial(sess._make_callable_from_options(options), DATA)

    alone = get_default_sess_config()
    alone.inter_op_parallelism_threads = -1
    for name, source in {
        "step": {"data": TensorInput(lambda: [tf.constant(DATA)])},
        "step through FeedInput": {"dataflow": Same()},
        "step through FeedInput in one thread": {"dataflow": Same(), "session_config": alone},
    }.items():
        yield Contest(
            f"{name} over bare callable",
            train(SimpleTrainer, Turns(make), pairs, steps, **source),
            unit="us",
            judge=difference,
            target="<= 20",
        )


class Same(DataFlow):
    """One small array, again and again."""

    def __iter__(self):
        while True:
            yield [DATA]


@contextlib.contextmanager
def bare_loop():
    """A callable that updates one weight from a `FIFOQueue` of 50, which a thread fills."""
    with tf.Graph().as_default():
        queue, fed = tf.FIFOQueue(50, [tf.float32], [[2]]), tf.placeholder(tf.float32, [2])
        enqueue, closing = queue.enqueue([fed]), queue.close(True)
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        cost = tf.reduce_mean(tf.square(weight * queue.dequeue() - 1))
        step = tf.train.GradientDescentOptimizer(0.01).minimize(cost)
        sess = tf.Session(config=get_default_sess_config())
        sess.run(tf.global_variables_initializer())
    with sess:
        fill = sess.make_callable(enqueue, feed_list=[fed])

        def filling():
            with contextlib.suppress(tf.errors.CancelledError):
                while True:
                    fill(DATA)

        thread = threading.Thread(target=filling)
        thread.start()
        try:
            yield sess.make_callable(step)
        finally:
            sess.run(closing)
            thread.join()


def queue_step(pairs=7, steps=4000):
    """A trainer's step through `QueueInput` against a bare loop around a queue.

    The loop has a graph and a session of its own in the same process; who has no turn waits at its
    full queue.
    """
    with bare_loop() as bare:
        sides = train(QueueInputTrainer, Turns(lambda trainer: bare), pairs, steps, dataflow=Same())
    yield Contest("step through QueueInput / bare queue loop", sides, unit="us", target="<= 1.15")
