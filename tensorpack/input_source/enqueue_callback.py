"""Fills the queue of an input source during the training: ahead of the steps, or in step with them.

By default an `EnqueueThread` makes datapoints ahead. In a deterministic run nothing is made ahead:
before a run of the hooked session, the main thread makes the datapoints that it needs.
"""

import time
from typing import Any, Callable, Dict

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.utils import logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed, Interrupted
from tensorpack.utils.workers.worker_errors import is_end_of_group

from .dequeue import ConsumedCount
from .enqueue_thread import EnqueueThread, Positions

_JOIN_SECONDS = 2.0  # for a thread that was told to stop
_INTERRUPTED_JOIN_SECONDS = 1.0  # the same after a signal
_GRACE_SECONDS = 0.5  # before, and after, the dataflow is closed while it is at work
_CANCEL_SECONDS = 0.5  # for an enqueue that was cancelled
_RESET_SECONDS = 10.0  # for the reset of a dataflow, before the other callbacks continue
_POLL_SECONDS = 0.05
_ORDERED_QUEUES = ("FIFOQueueV2", "PaddingFIFOQueueV2")


class EnqueueCallback(Callback):
    """Fills the queue of a `QueueInput`.

    Its state is the position in the dataflow after what the training has consumed, see
    `FlowCursor`. An error of the thread ends the run: it is the reason that the stop token gets
    before the queue is closed, so a trainer that finds the queue closed finds the reason, too.

    Args:
      thread: fills the queue. In a deterministic run its `enqueuer` is used alone.
      consumed: counts what steps take from that queue.
    """

    def __init__(self, thread: EnqueueThread, consumed: ConsumedCount) -> None:
        self._thread, self._enqueuer, self._consumed = thread, thread.enqueuer, consumed
        self._deterministic = False
        self._requested = 0  # datapoints that steps of this deterministic run have asked for
        self._position_before_step: Dict[str, Any] = {}
        self._started = False
        self._start_count = 0  # the count at which this run has begun
        self._warned = False
        self._forget: Callable[[], None] = lambda: None

    def _setup_graph(self) -> None:
        self._deterministic = self.sees_runs = self.trainer.deterministic
        if self._deterministic:
            self._consumed.keep_order()

    def _before_train(self) -> None:
        self._consumed.reset(tf.get_default_session())
        self._start_count = self._enqueuer.cursor.count
        if self._deterministic:
            self._check_queue()
            self._started = True
            self._interruptibly(self._begin)
        else:
            self._start_thread()

    def _start_thread(self) -> None:
        thread, consumed, token = self._thread, self._consumed, self.trainer.stop_token
        capacity = self._enqueuer.control.capacity
        # what is in the queue and beside it, what the thread holds, and where it begins
        room = capacity + consumed.per_run + consumed.ahead + 2
        thread.positions = Positions(room if capacity > 0 else None)

        def on_error(error: Exception) -> None:
            if not is_end_of_group(error, token):
                token.request(Failed(error, thread.name))
            thread.close_queue()

        guard_thread(thread, on_error)
        logger.info(f"Starting {thread.name} ...")
        self._started = True
        self._forget = token.on_request(thread.stop)
        thread.start()
        # The dataflow and the callbacks after this one draw their random streams in a fixed order.
        deadline = time.monotonic() + _RESET_SECONDS
        while thread.is_alive() and not token.requested and time.monotonic() < deadline:
            if thread.is_reset.wait(_POLL_SECONDS):
                return

    def _check_queue(self) -> None:
        control, needed = self._enqueuer.control, self._consumed.per_run
        if control.min_after_dequeue > 0 or 0 < control.capacity < needed:
            raise ValueError(
                f"In a deterministic run queue {control.op.name!r} must give and hold the {needed} "
                f"datapoints of a step and no others, but it has the capacity {control.capacity} "
                f"and keeps {control.min_after_dequeue}. Use a tf.FIFOQueue."
            )

    def _begin(self) -> None:
        self._enqueuer.ds.reset_state()
        self._enqueuer.begin(tf.get_default_session())

    def _before_run(self, ctx: tf.train.SessionRunContext) -> None:
        if self._deterministic:
            waiting = self._requested - self._consumed.read(ctx.session)
            self._position_before_step = self._enqueuer.cursor.position()
            for _ in range(self._consumed.per_run - waiting):
                self._requested += 1
                self._enqueuer.put(*self._interruptibly(self._enqueuer.take))

    def _interruptibly(self, function: Callable[[], Any]) -> Any:
        """Calls what may wait for the dataflow; ends the wait if the run is to end in time."""
        return self.trainer.interruptible(function, self._enqueuer.ds.close)

    def _after_epoch(self) -> None:
        # A queue without a limit drops nothing by itself.
        positions = self._thread.positions
        if positions is not None and self._enqueuer.control.capacity <= 0:
            positions.forget(self._start_count + self._consumed.read(tf.get_default_session()))

    def refill(self) -> None:
        """Drops what waits in the queue, and begins another pass over the dataflow; see
        `QueueInput.refill_queue`.
        """
        control = self._enqueuer.control
        if self._consumed.deferred or control.min_after_dequeue:
            where = "a StagingInput" if self._consumed.deferred else f"queue {control.op.name!r}"
            raise RuntimeError(
                f"The queue cannot be refilled: {where} keeps datapoints that cannot be dropped."
            )
        if not self._started:
            return  # nothing was made ahead
        count = self._start_count + self._consumed.read(tf.get_default_session())
        if self._deterministic:
            self._enqueuer.restart(count)
        else:
            self._thread.refill(count, self.trainer.check_stop)

    def state_dict(self) -> Dict[str, Any]:
        if not self._started:
            return self._enqueuer.cursor.start()
        consumed = self._consumed.read(tf.get_default_session())
        if not self._deterministic:
            if not self._warned and not self._keeps_order():
                self._warned = True
                logger.warning(self._order_is_lost())
            return self._position_at(self._start_count + consumed)
        if consumed != self._requested:
            if self._start_count + consumed == self._position_before_step["count"]:
                return self._position_before_step  # the step did not get its data
            raise RuntimeError(
                f"The input is not at a step boundary: {self._requested} datapoints were asked "
                f"for, {consumed} were consumed. Save after a step, not in it."
            )
        return self._enqueuer.cursor.position()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if self.trainer.resume_strictly and not self._deterministic and not self._keeps_order():
            raise RuntimeError(
                f"{self._order_is_lost()} Use a tf.FIFOQueue, or resume without what waited."
            )
        self._enqueuer.cursor.begin_at(state, self.trainer)

    def _position_at(self, count: int) -> Dict[str, Any]:
        cursor, positions = self._enqueuer.cursor, self._thread.positions
        may_be_at_start = cursor.count == self._start_count  # or on the way there
        try:
            return cursor.position_of(count, positions.at(count))
        except KeyError as error:
            if may_be_at_start:
                return cursor.start()
            raise RuntimeError(
                f"The state of the dataflow at datapoint {count} is not known: does something else "
                f"take datapoints out of queue {self._enqueuer.control.op.name!r}, or put them in?"
            ) from error

    def _keeps_order(self) -> bool:
        return self._enqueuer.control.op.type in _ORDERED_QUEUES

    def _order_is_lost(self) -> str:
        return (
            f"Queue {self._enqueuer.control.op.name!r} does not keep the order of the data: what "
            "waits in it is lost when the run is saved and resumed."
        )

    def _after_train(self) -> None:
        self._forget()
        if self._thread.ident is None:
            try:
                self._enqueuer.close()
            finally:
                self._enqueuer.ds.close()
        else:
            self._end_thread()

    def _end_thread(self) -> None:
        """Waits for the thread to end; the trainer's `QueueDrain` makes room meanwhile."""
        thread = self._thread
        interrupted = isinstance(self.trainer.stop_token.reason, Interrupted)
        deadline = time.monotonic() + (_INTERRUPTED_JOIN_SECONDS if interrupted else _JOIN_SECONDS)
        thread.stop()
        # A dataflow that has come to a datapoint by then is closed when its thread has left it.
        thread.join(_GRACE_SECONDS)
        self._enqueuer.ds.close()
        thread.join(max(deadline - time.monotonic(), _GRACE_SECONDS))
        if thread.is_alive():
            self._enqueuer.control.close(tf.get_default_session())
            thread.join(_CANCEL_SECONDS)
        if thread.is_alive():
            logger.error(
                f"Cannot join thread {thread.name}: the dataflow does not give it a datapoint and "
                "does not let it go."
            )
