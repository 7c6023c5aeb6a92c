"""Cases in which the data, a callback or somebody else breaks the run."""

import threading
from contextlib import suppress
from functools import partial

import numpy as np

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import FeedInput
from tensorpack.train import SimpleTrainer
from tests.helpers import HOOKS

from .data import GOOD, Flow, breaks, breaks_in_a_thread
from .marks import mark
from .training import CASES, FOR_EVER, At, case, train


@case
def finishes():
    train()
    mark("done")


@case
def item_breaks():
    train(Flow(45, breaks), max_epoch=FOR_EVER)


@case
def reset_breaks():
    train(Flow(on_reset=breaks), max_epoch=FOR_EVER)


@case
def thread_breaks():
    train(Flow(45, breaks_in_a_thread), max_epoch=FOR_EVER)


@case
def evaluation_breaks():
    def evaluates(_):
        for _ in Flow(5, breaks):
            pass

    train(None, At("trigger_epoch", evaluates))


@case
def empty():
    train(DataFromList([]))


@case
def finite():
    train(data=FeedInput(DataFromList([GOOD] * 25), infinite=False), make=SimpleTrainer)


class ClosesQueue(Callback):
    """Closes the input queue at step 30, in another thread or not."""

    def __init__(self, in_thread):
        self._in_thread = in_thread

    def _setup_graph(self):
        queue = self.graph.get_operation_by_name("input_queue").outputs[0]
        self._op = tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)

    def _trigger_step(self):
        if self.global_step == 30:
            threading.Thread(target=self._close).start() if self._in_thread else self._close()

    def _close(self):
        with suppress(tf.errors.CancelledError):  # the run may end before this call returns
            self.trainer.sess.run(self._op)


for name, in_thread in (("a_callback", False), ("another_thread", True)):
    CASES[f"queue_closed_by_{name}"] = partial(train, None, ClosesQueue(in_thread))


@case
def session_closed():
    train(None, At("trigger_step", lambda self: self.trainer.sess.close(), step=30))


@case
def other_graph():
    with tf.Graph().as_default():
        stranger = tf.constant(1.0, name="stranger")
    train(None, At("trigger_step", lambda self: self.trainer.sess.run(stranger), step=30))


def _hook_breaks(hook):
    def broken(_):
        raise LookupError("the callback is broken")

    train(None, At(hook, broken))


def _bad_field(at, *datapoint):
    train(Flow(at, lambda: list(datapoint)), max_epoch=FOR_EVER)


CASES.update({"hook_" + hook: partial(_hook_breaks, hook) for hook in HOOKS})
CASES["none"] = partial(_bad_field, 0, None, GOOD[1])
CASES["wrong_rank_later"] = partial(_bad_field, 45, np.ones([4, 4], np.float32), GOOD[1])
CASES["too_few_fields"] = partial(_bad_field, 45, GOOD[1])
