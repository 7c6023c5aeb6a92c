"""Small flows for an input source, and a run of it without a trainer."""

import weakref
from contextlib import contextmanager

from tensorpack.callbacks import Callbacks
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.tfutils.callback import TrainerContract
from tensorpack.tfutils.hooked_session import HookedSession
from tensorpack.tfutils.queues import QueueDrain, all_queues
from tensorpack.utils.stopping import Finished, StopToken


class FlowOf(DataFlow):
    """A dataflow whose passes a function makes.

    Args:
      one_pass: called with the number of the pass, from 0; returns an iterator.
      length: of a pass.
    """

    def __init__(self, one_pass, length=None):
        self._one_pass = one_pass
        self._length = length
        self.passes = 0
        self.resets = 0

    def reset_state(self):
        self.resets += 1

    def __iter__(self):
        self.passes += 1
        return iter(self._one_pass(self.passes - 1))

    def __len__(self):
        return super().__len__() if self._length is None else self._length


def numbers(length):
    """A flow of the numbers below a length."""
    return FlowOf(lambda number: [[i] for i in range(length)], length)


class Trainer(TrainerContract):
    """What the callbacks of an input source ask of a trainer."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def hooked(sess, callbacks):
    """The session with the callbacks as the hooks that a trainer makes of them."""
    group = Callbacks(callbacks)
    return HookedSession(sess, group.get_hooks(), group.run_along)


@contextmanager
def running(source, signature, get_fetches=None, states=None, **trainer_attributes):
    """Sets a source up, yields (trainer, session, fetches, callbacks) between the hooks.

    With `states`, one for each callback, the run continues from them.
    """
    callbacks = source.setup(signature)
    fetches = (get_fetches or source.get_input_tensors)()
    trainer = Trainer(stop_token=StopToken(), **trainer_attributes)
    for callback in callbacks:
        callback.setup_graph(weakref.proxy(trainer))
    queues = all_queues(tf.get_default_graph())
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(tf.global_variables_initializer())
        sess.graph.finalize()
        entered = []
        for callback, state in zip(callbacks, states or []):
            if state:
                callback.load_state_dict(state)
        try:
            for callback in callbacks:
                entered.append(callback)
                callback.before_train()
            yield trainer, sess, fetches, callbacks
        finally:
            trainer.stop_token.request(Finished())
            with QueueDrain(queues, sess):
                for callback in entered:
                    callback.after_train()
