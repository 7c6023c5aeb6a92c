"""Starts the enqueue thread of a queue input, listens to it, stops it and sees it leave."""

import time
from typing import Any, Callable, Dict

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.queues import QueueControl
from tensorpack.utils import logger
from tensorpack.utils.concurrency import guard_thread
from tensorpack.utils.stopping import Failed, Interrupted

from .consumption import ConsumedCount
from .enqueue_thread import EnqueueThread
from .lockstep import Gate
from .positions import Positions

__all__ = ["EnqueueOwner"]

_LEAVE_SECONDS = 2.0  # for a thread that was let go, and for a datapoint that is being made
_HURRY_SECONDS = 1.0  # the same where somebody waits for the end: after a signal
_COURTESY_SECONDS = 0.5  # before the dataflow is closed while it is at work
_CANCEL_SECONDS = 0.5  # for what it takes to come out of a cancelled op
_RESET_SECONDS = 10.0  # for the reset of a dataflow, before the others go on
_POLL_SECONDS = 0.05
_IDLE_SECONDS = 5.0  # for the way back to the gate, when all datapoints have arrived
_ORDERLY = ("FIFOQueueV2", "PaddingFIFOQueueV2")


class EnqueueOwner(Callback):
    """Owns an `EnqueueThread` from the start of the training to its end.

    An error of the thread ends the run: it is the reason that the stop token gets before the queue
    is closed, so a trainer that finds the queue closed finds the reason, too.

    Its state is the position in the dataflow behind what the training has consumed, see
    `FlowCursor`. In a deterministic run the thread begins with a datapoint when a run of the hooked
    session needs one, and is idle between two steps.

    Args:
      thread: to be run; not started yet.
      control: of the queue that it fills.
      consumed: counts what comes out of that queue.
    """

    def __init__(
        self, thread: EnqueueThread, control: QueueControl, consumed: ConsumedCount
    ) -> None:
        self._thread = thread
        self._control = control
        self._consumed = consumed
        self._begun_at = 0  # the count at which this run has begun
        self._warned = False
        self._forget: Callable[[], None] = lambda: None

    def _before_train(self) -> None:
        token = self.trainer.stop_token

        def on_error(error: Exception) -> None:
            token.request(Failed(error, self._thread.name))
            self._thread.close_queue()

        guard_thread(self._thread, on_error)
        self._consumed.reset(tf.get_default_session())
        self._prepare_positions()
        logger.info(f"Starting {self._thread.name} ...")
        self._forget = token.on_request(self._thread.stop)
        self._thread.start()
        self._wait_for_start()

    def _prepare_positions(self) -> None:
        thread = self._thread
        self._begun_at = thread.cursor.count
        if self.trainer.deterministic:
            self._check_lockstep()
            thread.gate = Gate()
            return
        consumed = self._consumed
        room = self._control.capacity + consumed.per_run + consumed.ahead
        room += 2  # the first and the next
        thread.positions = Positions(room if self._control.capacity > 0 else None)

    def _check_lockstep(self) -> None:
        op, needed = self._control.op, self._consumed.per_run
        kept = op.get_attr("min_after_dequeue") if op.type == "RandomShuffleQueueV2" else 0
        if kept > 0 or 0 < self._control.capacity < needed:
            raise ValueError(
                f"In a deterministic run queue {op.name!r} must give and hold the {needed} "
                f"datapoints of a step and no others, but it has the capacity "
                f"{self._control.capacity} and keeps {kept}. Use a tf.FIFOQueue."
            )

    def _wait_for_start(self) -> None:
        """Waits until the dataflow is reset, so that it and the callbacks behind this one get
        their random streams always in the same order; in lockstep, until it is where it begins.
        """
        if self._thread.gate is not None:
            self._wait_until_idle(self._thread.gate)
            return
        deadline = time.monotonic() + _RESET_SECONDS
        while self._goes_on() and time.monotonic() < deadline:
            if self._thread.is_reset.wait(_POLL_SECONDS):
                return

    def _wait_until_idle(self, gate: Gate) -> None:
        """Waits until the thread has made what it may, or leaves, or the run is to end."""
        while self._goes_on() and not gate.wait_idle(_POLL_SECONDS):
            pass

    def _goes_on(self) -> bool:
        return self._thread.is_alive() and not self.trainer.stop_token.requested

    def _before_run(self, ctx: tf.train.SessionRunContext) -> None:
        gate = self._thread.gate
        if gate is not None:
            under_way = gate.granted - self._consumed.read(ctx.session)
            gate.allow(max(self._consumed.per_run - under_way, 0))
            # Were the data to come during the run, what the run sees of the queue would be chance.
            self._wait_until_idle(gate)

    def _after_epoch(self) -> None:
        # A queue without a limit drops nothing by itself.
        if self._thread.positions is not None and self._control.capacity <= 0:
            self._thread.positions.forget(self._begun_at + self._read_consumed())

    def state_dict(self) -> Dict[str, Any]:
        """Returns the position behind the last datapoint that was consumed.

        Raises:
          RuntimeError: nobody knows it: there is no session any more, a deterministic run is in the
            middle of a step, or somebody else takes datapoints out of the queue.
        """
        thread = self._thread
        if thread.ident is None:
            return thread.cursor.start()
        consumed = self._read_consumed()
        if thread.gate is not None:
            return self._position_in_lockstep(thread.gate, consumed)
        self._warn_of_disorder()
        return self._position_at(self._begun_at + consumed)

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Lets the thread begin at this position.

        Raises:
          RuntimeError: the run is to be resumed strictly, and this cannot be done exactly.
          ValueError: it is not a position in such a dataflow.
        """
        trainer = self.trainer
        if trainer.resume_strictly and not trainer.deterministic and not self._is_orderly():
            raise RuntimeError(
                f"{self._disorder()} Use a tf.FIFOQueue, or resume without what waited."
            )
        self._thread.cursor.begin_at(
            state, trainer.resume_strictly, trainer.stop_token.raise_if_requested
        )

    def _position_in_lockstep(self, gate: Gate, consumed: int) -> Dict[str, Any]:
        if consumed != gate.granted or not gate.wait_idle(_IDLE_SECONDS):
            raise RuntimeError(
                f"The input is not at a step boundary: {gate.granted} datapoints were asked for, "
                f"{consumed} were consumed. Save after a step, not in it."
            )
        return self._thread.cursor.position()

    def _position_at(self, count: int) -> Dict[str, Any]:
        cursor, positions = self._thread.cursor, self._thread.positions
        on_its_way = cursor.count == self._begun_at  # perhaps it is not yet where it begins
        try:
            return cursor.position_of(count, positions.at(count))
        except KeyError as error:
            if on_its_way:
                return cursor.start()
            raise RuntimeError(
                f"Nobody knows where the dataflow was at datapoint {count}: does somebody else "
                f"take datapoints out of queue {self._control.op.name!r}, or put them in?"
            ) from error

    def _read_consumed(self) -> int:
        sess = tf.get_default_session()
        try:
            if sess is None:
                raise RuntimeError("no session is the default one")
            return self._consumed.read(sess)
        except RuntimeError as error:
            raise RuntimeError(
                f"What {self._thread.name} has delivered is counted in the session, and there is "
                f"none: {error}. Save the state while the training runs, on its main thread."
            ) from error

    def _is_orderly(self) -> bool:
        return self._control.op.type in _ORDERLY

    def _disorder(self) -> str:
        return (
            f"Queue {self._control.op.name!r} does not keep the order of the data: what waits in "
            "it is lost when the run is saved and resumed."
        )

    def _warn_of_disorder(self) -> None:
        if not self._warned and not self._is_orderly():
            self._warned = True
            logger.warning(self._disorder())

    def _after_train(self) -> None:
        self._forget()
        if self._thread.ident is None:  # never started, but the processes of the dataflow may be
            self._thread.close_dataflow()
            return
        sess = tf.get_default_session()
        self._thread.stop()
        if self._thread.gate is not None:
            self._thread.gate.close()
        interrupted = isinstance(self.trainer.stop_token.reason, Interrupted)
        deadline = time.monotonic() + (_HURRY_SECONDS if interrupted else _LEAVE_SECONDS)
        try:
            # a dataflow that has come to a datapoint by then is closed when its thread has left it
            left = self._control.drain_until(sess, self._has_left, _COURTESY_SECONDS)
            self._thread.close_dataflow()
            if not left and not self._control.drain_until(
                sess, self._has_left, max(deadline - time.monotonic(), _COURTESY_SECONDS)
            ):
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
