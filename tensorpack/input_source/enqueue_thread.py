"""The thread between a dataflow and a TensorFlow queue."""

import threading
from contextlib import closing
from typing import Any, Callable, Iterator, List, Optional, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFlowTerminated
from tensorpack.tfutils.prepared import prepare
from tensorpack.utils.concurrency import ShareSessionThread
from tensorpack.utils.stopping import StopRequested

from .aliasing import private
from .check import DatapointChecker
from .cursor import FlowCursor, check_is_dataflow
from .errors import QueueClosed
from .lockstep import Gate
from .positions import Positions

__all__ = ["EnqueueThread"]

# What running an op on a closed queue, or in a closed session, raises.
_CLOSED = (tf.errors.CancelledError, RuntimeError)


class EnqueueThread(ShareSessionThread):
    """Puts the datapoints of a dataflow into a queue, pass after pass, until it is asked to stop.

    Whoever starts it stops and joins it, and listens to its error with `guard_thread`. Once it is
    asked to stop it enqueues nothing more, and it closes the queue: whoever waits for data then
    does not wait for ever. A thread that waits for room in a full queue sees the stop only when it
    gets some, so make room (`QueueControl.drain_until`) before joining it; nothing has to be
    cancelled.

    With a `gate` it makes a datapoint only when the gate allows one. Such a datapoint is delivered
    even when the thread has been asked to stop, for a step that has begun waits for it; the thread
    leaves, and closes the queue, when the gate is closed.

    Made while the graph can still be changed, started where the session is the default one.

    Args:
      queue: the `tf.QueueBase` to fill.
      ds: the dataflow; the thread calls its `reset_state`.
      placeholders: one for each component.
      signature: what a datapoint has to be; defaults to what the placeholders say.

    Attributes:
      cursor: goes through the dataflow; may be told where to begin before the thread starts.
      positions: the states of the dataflow, by the number of datapoints, for all that may be in the
        queue; kept by whoever needs them: None, until it is set before the thread starts.
      gate: None, or set before the thread starts.
      is_reset: an event, set when `reset_state` of the dataflow has returned, or will not.
    """

    def __init__(
        self,
        queue: Any,
        ds: DataFlow,
        placeholders: Sequence[tf.Tensor],
        signature: Optional[Sequence[tf.TensorSpec]] = None,
    ) -> None:
        super().__init__()
        self.name = "EnqueueThread"
        self._ds = check_is_dataflow(ds)
        self.cursor = FlowCursor(ds)
        self.positions: Optional[Positions] = None
        self.gate: Optional[Gate] = None
        self.is_reset = threading.Event()
        self._placeholders = list(placeholders)
        self._check = DatapointChecker(signature or [_spec(each) for each in self._placeholders])
        self._queue_name = queue.queue_ref.op.name
        self._capacity = queue.queue_ref.op.get_attr("capacity")
        with tf.device("/cpu:0"):
            self._enqueue_op = _enqueue_op(queue, self._placeholders)
            self._close_op = queue.close()
            self._state = [queue.is_closed(), queue.size()]
        self._enqueuing = threading.Lock()  # held while the enqueue op runs
        self._closing = threading.Lock()

    def run(self) -> None:
        """Fills the queue; called by `start`."""
        with self.default_sess() as sess:
            if sess is None:
                raise RuntimeError(
                    "EnqueueThread has no session: start it inside `with sess.as_default()`."
                )
            op, placeholders = self._enqueue_op, self._placeholders
            enqueue = prepare(sess, [op], placeholders, in_caller=True).call
            try:
                self._fill(enqueue)
            except StopRequested:
                pass  # the dataflow looked at the same stop token as we
            except DataFlowTerminated:
                if not self.stopped():
                    raise
            except Exception:
                raise
            except BaseException as error:  # SystemExit would end this thread without a word
                raise RuntimeError(f"The dataflow raised {error!r} in {self.name}.") from error
            finally:
                self.is_reset.set()
            self.close_queue()

    def stop(self) -> None:
        """Asks the thread to stop; closes the queue unless the thread is about to do so."""
        super().stop()
        if self.gate is not None:
            return
        # While it holds the lock it will come out, see the stop and close the queue. While it does
        # not, it is in the dataflow, perhaps for long, and a consumer may be waiting.
        if self._enqueuing.acquire(blocking=False):
            try:
                self._close(wait=False)
            finally:
                self._enqueuing.release()

    def close_queue(self) -> None:
        """Closes the queue if it is open. For who has told why the thread ended by an error."""
        self._close(wait=True)

    def close_dataflow(self) -> None:
        """Ends what the dataflow has open, and with that a wait for its processes."""
        self._ds.close()

    def _fill(self, enqueue: Callable[..., Any]) -> None:
        if self.stopped():
            return
        self._ds.reset_state()
        start = self.cursor.start()
        begins_anew = start["count"] == 0 and start["flow"] is None
        if begins_anew:
            self._record()  # from here on the training goes on, and may be saved
        self.is_reset.set()
        with closing(self.cursor.begin()) as source:
            if not begins_anew:
                self._record()
            for datapoint in source if self.gate is None else self._allowed(source, self.gate):
                if self._leaves():
                    return
                # Before the enqueue: right after it a step may take the datapoint and be saved.
                self._record()
                arrays = [private(each) for each in self._check(datapoint)]
                if not self._enqueue(enqueue, arrays):
                    return

    @staticmethod
    def _allowed(source: Iterator[Any], gate: Gate) -> Iterator[Any]:
        while gate.enter():
            yield next(source)

    def _record(self) -> None:
        if self.positions is not None:
            self.positions.record(self.cursor.count, self.cursor.flow_state())

    def _leaves(self) -> bool:
        return self.stopped() if self.gate is None else self.gate.closed

    def _enqueue(self, enqueue: Callable[..., Any], arrays: List[np.ndarray]) -> bool:
        """Waits for room and enqueues; returns whether to go on."""
        with self._enqueuing:
            if self._leaves():
                return False
            try:
                enqueue(*arrays)
            except _CLOSED as error:
                if self.stopped():
                    return False
                raise QueueClosed(
                    f"{self.name} cannot fill {self._queue_name!r} any more: the queue or its "
                    "session was closed by somebody else while the training went on. To end a "
                    "training, use trainer.stop_token."
                ) from error
        return not self._leaves()

    def _close(self, wait: bool) -> None:
        """Closes the queue; with `wait=False` not if that has to wait for somebody's enqueue."""
        # TensorFlow complains aloud about a second close, so only one thread at a time looks
        if self._sess is None or not self._closing.acquire(blocking=wait):
            return
        try:
            is_closed, size = self._sess.run(self._state)
            has_room = self._capacity <= 0 or size < self._capacity  # -1: without a limit
            if not is_closed and (wait or has_room):
                self._sess.run(self._close_op)
        except _CLOSED:
            pass  # by another thread, or with the session: nobody waits on it
        finally:
            self._closing.release()


def _spec(placeholder: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec(placeholder.shape, placeholder.dtype, placeholder.op.name)


def _enqueue_op(queue: Any, components: Sequence[tf.Tensor]) -> tf.Operation:
    if queue.names:
        return queue.enqueue(dict(zip(queue.names, components)))
    return queue.enqueue(components)
