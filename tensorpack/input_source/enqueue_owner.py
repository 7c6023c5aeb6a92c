"""Starts the enqueue thread of a queue input, listens to it, stops it and sees it leave."""

import time
from typing import Callable

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.queues import QueueControl
from tensorpack.utils import logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed

from .enqueue_thread import EnqueueThread

__all__ = ["EnqueueOwner"]

_LEAVE_SECONDS = 2.0  # for a thread that was let go, and for a datapoint that is being made
_CANCEL_SECONDS = 0.5  # for what it takes to come out of a cancelled op


class EnqueueOwner(Callback):
    """Owns an `EnqueueThread` from the start of the training to its end.

    An error of the thread ends the run: it is the reason that the stop token gets before the queue
    is closed, so a trainer that finds the queue closed finds the reason, too.

    Args:
      thread: to be run; not started yet.
      control: of the queue that it fills.
    """

    def __init__(self, thread: EnqueueThread, control: QueueControl) -> None:
        self._thread = thread
        self._control = control
        self._forget: Callable[[], None] = lambda: None

    def _before_train(self) -> None:
        token = self.trainer.stop_token

        def on_error(error: Exception) -> None:
            token.request(Failed(error, self._thread.name))
            self._thread.close_queue()

        guard_thread(self._thread, on_error)
        logger.info(f"Starting {self._thread.name} ...")
        self._forget = token.on_request(self._thread.stop)
        self._thread.start()

    def _after_train(self) -> None:
        self._forget()
        if self._thread.ident is None:
            return  # never started
        sess = tf.get_default_session()
        self._thread.stop()
        deadline = time.monotonic() + _LEAVE_SECONDS
        try:
            if not self._control.drain_until(sess, self._has_left, _LEAVE_SECONDS):
                self._control.close(sess, cancel=True)
                deadline = time.monotonic() + _CANCEL_SECONDS
        finally:
            self._thread.join(max(deadline - time.monotonic(), 0.0))
        if self._thread.is_alive():
            logger.error(
                f"Cannot join thread {self._thread.name}: the dataflow does not give it a "
                "datapoint and does not let it go."
            )

    def _has_left(self) -> bool:
        return not self._thread.is_alive()
