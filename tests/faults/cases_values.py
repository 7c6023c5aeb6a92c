"""Cases in which numbers stop being finite, or a dataflow uses its memory again."""

from functools import partial

import numpy as np

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.train import QueueInputTrainer, SimpleTrainer
from tests.helpers import TinyModel, array_at

from .data import GOOD, Flow
from .marks import mark
from .training import CASES, FOR_EVER, STEPS, case, train


@case
def nan_from_data():
    train(Flow(44, lambda: [np.full(4, np.nan, np.float32), GOOD[1]]), max_epoch=FOR_EVER)


@case
def log_of_zero():
    class Log(TinyModel):
        def build_graph(self, x, y):
            return tf.add(super().build_graph(x, y), tf.reduce_mean(tf.log(x)), name="entropy")

    zero = [np.zeros(4, np.float32), GOOD[1]]
    train(Flow(44, lambda: zero), model=Log(), max_epoch=FOR_EVER)


@case
def weights_break_unseen():
    """The norm of nothing is 0, and its gradient is NaN: in the last step before a save."""

    class Norm(TinyModel):
        def build_graph(self, x, y):
            weight = tf.get_variable("scale", [], initializer=tf.ones_initializer())
            return tf.sqrt(tf.reduce_mean(tf.square(x * weight)), name="norm")

    zero = [np.zeros(4, np.float32), GOOD[1]]
    train(Flow(2 * STEPS - 1, lambda: zero), model=Norm(0.01), max_epoch=FOR_EVER)


class OneBuffer(DataFlow):
    """Yields the same array again and again, full of the number of the datapoint.

    Its memory begins at a multiple of 64 bytes, where TensorFlow would take it over without a copy.
    """

    def __init__(self, size):
        self._array = array_at(0, size)

    def __iter__(self):
        number = 0
        while True:
            self._array[:] = number
            yield [self._array, self._array]
            number += 1


class InOrder(Callback):
    """Looks at the inputs of each step: all numbers are that of the step, from 0."""

    def _setup_graph(self):
        self._inputs = self.get_tensors_maybe_in_tower(["x", "y"])

    def _before_run(self, ctx):
        return tf.train.SessionRunArgs(self._inputs)

    def _after_run(self, ctx, run_values):
        for value in run_values.results:
            if not np.array_equal(value, np.full_like(value, self.global_step - 1)):
                raise ValueError(f"step {self.global_step} got {value}")

    def _after_train(self):
        mark(f"in order until {self.global_step}")


def _memory_reused(make):
    train(OneBuffer(3000), InOrder(), model=TinyModel(0.0), make=make)


CASES["memory_reused"] = partial(_memory_reused, QueueInputTrainer)
CASES["memory_reused_without_a_queue"] = partial(_memory_reused, SimpleTrainer)
