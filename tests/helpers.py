"""Small parts that many tests need; TensorFlow is loaded with them."""

import importlib

import numpy as np

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.train import TrainConfig
from tensorpack.utils.checkpoints import Segments

HOOKS = (  # in the order of a run
    "setup_graph",
    "before_train",
    "before_epoch",
    "before_run",
    "after_run",
    "trigger_step",
    "after_epoch",
    "trigger_epoch",
    "after_train",
)


def config(callbacks=(), **options):
    """A short run without the callbacks and monitors that every other run has."""
    defaults = {"extra_callbacks": [], "monitors": [], "steps_per_epoch": 2, "max_epoch": 1}
    return TrainConfig(callbacks=list(callbacks), **{**defaults, **options})


def eagerly():
    """A context in which TensorFlow executes eagerly, as 2 does before a trainer is made."""
    return importlib.import_module("tensorflow.python.eager.context").eager_mode()


class CallbackSpy(Callback):
    """Writes the name of each hook on a tape when it is called.

    Args:
      tape: the list to write on; a new one unless given, so that several spies can share one.
      label: put before each name, with a dot between.
    """

    def __init__(self, tape=None, label=""):
        self.tape = [] if tape is None else tape
        self._prefix = label + "." if label else ""

    def _note(self, hook):
        self.tape.append(self._prefix + hook)


for _hook in HOOKS:
    setattr(CallbackSpy, f"_{_hook}", lambda self, *args, hook=_hook: self._note(hook))


class LargeState(Callback):
    """Has segments in its state, and remembers how their save went, as ("done", refs)."""

    told = None

    def state_dict(self):
        return {"frames": Segments([], [], self._on_done)}

    def _on_done(self, refs):
        self.told = ("done", refs)


class TinyModel(ModelDesc):
    """One weight and one bias that learn `y = x w + b`; the smallest model that trains.

    Args:
      learning_rate: of plain gradient descent.
    """

    def __init__(self, learning_rate=0.1):
        self._learning_rate = learning_rate

    def inputs(self):
        return [tf.TensorSpec([None], tf.float32, "x"), tf.TensorSpec([None], tf.float32, "y")]

    def build_graph(self, x, y):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        predicted = tf.add(x * weight, bias, name="predicted")
        return tf.reduce_mean(tf.square(predicted - y), name="cost")

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(self._learning_rate)


def array_at(offset, size):
    """Returns a float32 array whose memory begins `offset` bytes behind a multiple of 64."""
    memory = np.zeros(size * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size * 4].view(np.float32)
