"""Cases in which the data, a callback or somebody else breaks the run."""

import threading

import numpy as np

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput
from tensorpack.train import SimpleTrainer

from .child import CASES, FOR_EVER, At, case, train
from .data import BAD_FIELDS, BAD_LATER, Empty, Flow, bad, breaks, breaks_in_a_thread
from .marks import mark

HOOKS = (
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
    train(Empty())


@case
def finite():
    train(data=FeedInput(_Finite(), infinite=False), make=SimpleTrainer)


class _Finite(Flow):
    def __iter__(self):
        for _, datapoint in zip(range(25), super().__iter__()):
            yield datapoint


class ClosesQueue(Callback):
    """Closes the input queue, after an epoch or in another thread at step 30."""

    def __init__(self, in_thread):
        self._in_thread = in_thread

    def _setup_graph(self):
        queue = self.graph.get_operation_by_name("input_queue").outputs[0]
        self._close = tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)

    def _before_train(self):
        self._thread = threading.Thread(target=self.trainer.sess.run, args=(self._close,))

    def _trigger_step(self):
        if self._in_thread and self.global_step == 30:
            self._thread.start()

    def _trigger_epoch(self):
        if not self._in_thread:
            self.trainer.sess.run(self._close)

    def _after_train(self):
        if self._in_thread:
            self._thread.join()


@case
def queue_closed_with_cancelling():
    train(None, ClosesQueue(in_thread=False), max_epoch=FOR_EVER)


@case
def queue_closed_by_another_thread():
    train(None, ClosesQueue(in_thread=True), max_epoch=FOR_EVER)


@case
def session_closed():
    train(None, At("trigger_step", lambda self: self.trainer.sess.close(), step=30))


@case
def other_graph():
    with tf.Graph().as_default():
        stranger = tf.constant(1.0, name="stranger")
    train(None, At("trigger_step", lambda self: self.trainer.sess.run(stranger), step=30))


def _hook_case(hook):
    def broken(_):
        raise LookupError("the callback is broken")

    return lambda: train(None, At(hook, broken))


CASES.update({"hook_" + hook: _hook_case(hook) for hook in HOOKS})


def _field_case(name, at):
    return lambda: train(Flow(at, bad(name)), max_epoch=FOR_EVER)


CASES.update({f"field_{name}": _field_case(name, 0) for name in BAD_FIELDS})
CASES.update({f"field_{name}_later": _field_case(name, 45) for name in BAD_LATER})


@case
def too_few_fields():
    train(Flow(45, lambda: [np.ones(4, np.float32)]), max_epoch=FOR_EVER)
