"""Ends TensorFlow queues in order, so that no thread keeps waiting on one.

An enqueue that is cancelled while its queue is open makes TensorFlow print a warning that users
take for the cause of whatever ended their run. So a producer that waits for room gets room, and a
queue is closed when its producers have left. Works on the op, so it serves any queue of a graph.
"""

import threading
import time
from contextlib import suppress
from typing import Any, Dict, List, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .common import PerGraph

_QUEUE_OPS = ("FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2")
_POLL_SECONDS = 0.005
# Producers that look at their stop flag leave within this time; others find the queue closed.
_PATIENCE_SECONDS = 2.0


class QueueClosed(RuntimeError):
    """A queue or its session was closed without a stop of the run having been requested."""


class QueueControl:
    """Size, drain and close of one queue; `control_of` returns the one of a queue.

    It adds ops to the graph, so it is made before that is finalised.

    Attributes:
      capacity: of the queue; not positive if it has no limit.
      min_after_dequeue: elements that stay in the queue until it is closed; 0 in most queues.
      ended: whether what fills the queue has come to its end, so that it is closed in order.
    """

    def __init__(self, op: tf.Operation) -> None:
        self.op = op
        self.ended = False
        self.capacity = op.get_attr("capacity")
        shuffles = op.type == "RandomShuffleQueueV2"
        self.min_after_dequeue = op.get_attr("min_after_dequeue") if shuffles else 0
        handle, raw = op.outputs[0], tf.raw_ops
        types = list(op.get_attr("component_types"))
        if op.type == "PriorityQueueV2":
            types = [tf.int64] + types  # the priority comes first
        with tf.name_scope(op.name + "_control"), tf.control_dependencies(None):
            with tf.device(op.device):
                self._size = raw.QueueSizeV2(handle=handle)
                self._is_closed = raw.QueueIsClosedV2(handle=handle)
                self._close = raw.QueueCloseV2(handle=handle, cancel_pending_enqueues=True)
                self._dequeue = raw.QueueDequeueV2(handle=handle, component_types=types)[0].op

    def size(self, sess: tf.Session) -> int:
        """How many elements the queue holds."""
        return int(sess.run(self._size))

    def is_full(self, sess: tf.Session) -> bool:
        """Whether what is enqueued waits; False in a session that is closed."""
        with suppress(RuntimeError, tf.errors.CancelledError):
            return 0 < self.capacity <= self.size(sess)
        return False

    def is_closed(self, sess: tf.Session) -> bool:
        """Whether the queue was closed."""
        return bool(sess.run(self._is_closed))

    def close(self, sess: tf.Session) -> None:
        """Closes the queue at once: enqueues that wait fail, and dequeues once it is empty.

        May be called again, from any thread, and in a closed session.
        """
        # In a session that is closed, or is being closed, nothing waits.
        with suppress(RuntimeError, tf.errors.CancelledError):
            sess.run(self._close)

    def closed_for(self, producer: str) -> QueueClosed:
        """Returns the error of what fills the queue, and found it closed during the training."""
        return QueueClosed(
            f"{producer} cannot fill {self.op.name!r} any more: the queue or its session was "
            "closed while the training continued. To end a training, call "
            "trainer.stop_token.request(reason)."
        )

    def empty(self, sess: tf.Session) -> None:
        """Takes out all elements but `min_after_dequeue`, while nothing else does."""
        for _ in range(self.size(sess) - self.min_after_dequeue):
            sess.run(self._dequeue)

    def make_room(self, sess: tf.Session) -> bool:
        """Takes half of the elements out if the queue is full; returns whether it was.

        For `QueueDrain`: if another consumer takes elements in between, this waits for the next
        ones, or until the queue is closed.
        """
        full = 0 < self.capacity <= self.size(sess)
        if full:  # not one: a producer may have thousands of elements to add in one run
            for _ in range(max(1, (self.capacity - self.min_after_dequeue) // 2)):
                sess.run(self._dequeue)
        return full


_controls: PerGraph[Dict[str, QueueControl]] = PerGraph(dict)


def control_of(queue: Any) -> QueueControl:
    """Returns the only control of a queue, a `tf.QueueBase` or the op that makes it."""
    op = queue.queue_ref.op if isinstance(queue, tf.QueueBase) else queue
    controls = _controls.get(op.graph)
    if op.name not in controls:
        with op.graph.as_default():
            controls[op.name] = QueueControl(op)
    return controls[op.name]


def all_queues(graph: tf.Graph) -> List[QueueControl]:
    """Returns the control of each queue in the graph that is not on a server."""
    queues = [op for op in graph.get_operations() if op.type in _QUEUE_OPS]
    return [control_of(op) for op in queues if tf.DeviceSpec.from_string(op.device).job != "ps"]


class QueueDrain:
    """Makes room in full queues for the time of a `with` block, and closes all queues at its end.

    Producers that wait for room come out and see their stop flag. If some have not after
    `patience`, the queues are closed. Enter it when nothing consumes from the queues any more.
    """

    def __init__(
        self, queues: Sequence[QueueControl], sess: tf.Session, patience: float = _PATIENCE_SECONDS
    ) -> None:
        self._queues, self._sess, self._patience = queues, sess, patience
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._drain, name="QueueDrain", daemon=True)

    def __enter__(self) -> "QueueDrain":
        try:
            self._thread.start()
        except RuntimeError as error:  # the system has no more threads
            logger.warning(f"No thread can drain the queues, so they are closed: {error}.")
            self._close()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._done.set()
        self._close()
        if self._thread.ident is not None:
            self._thread.join()

    def _close(self) -> None:
        for queue in self._queues:
            queue.close(self._sess)

    def _drain(self) -> None:
        deadline, full = time.monotonic() + self._patience, False
        while not self._done.wait(0 if full else _POLL_SECONDS):
            full = sum(self._make_room(queue) for queue in self._queues) > 0
            if time.monotonic() > deadline:
                self._close()
                return

    def _make_room(self, queue: QueueControl) -> bool:
        try:
            return queue.make_room(self._sess)
        except (tf.errors.OutOfRangeError, tf.errors.CancelledError, RuntimeError):
            return False  # the queue or the session was closed
        except Exception:
            logger.exception(f"Could not make room in queue {queue.op.name!r}.")
            return False
