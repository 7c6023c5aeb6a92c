"""Ends TensorFlow queues in order: nobody is left waiting on them, and nothing is cancelled that
need not be.

An enqueue that is cancelled while its queue is open makes TensorFlow print a warning that users
take for the cause of whatever ended their run. So a producer that waits for room is let go by
making room, and the queue is closed once the producers have left, or at least without cancelling.
Works on the op, so it serves any queue of the graph, whoever made it.
"""

import threading
import time
from typing import Any, Callable, List

from tensorpack.compat import tfv1 as tf

from .common import PerGraph

__all__ = ["QueueControl", "all_queues"]

_QUEUE_OPS = ("FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2")
_POLL_SECONDS = 0.002

# Between "it is full" and the dequeue nobody else may drain, or the last one waits for ever.
_drain_locks: PerGraph = PerGraph(threading.Lock)


class QueueControl:
    """Size, drain and close of one queue. Adds its ops to the graph, so it is made before that is
    finalised.

    Args:
      queue: a `tf.QueueBase`, or the op that makes the queue.
    """

    def __init__(self, queue: Any) -> None:
        resource = queue.queue_ref if isinstance(queue, tf.QueueBase) else queue.outputs[0]
        self.op = resource.op
        self.capacity = self.op.get_attr("capacity")
        raw = tf.raw_ops
        with tf.name_scope(self.op.name + "_control"), tf.control_dependencies(None):
            with tf.device(self.op.device):
                self._size = raw.QueueSizeV2(handle=resource)
                self._close = raw.QueueCloseV2(handle=resource, cancel_pending_enqueues=False)
                self._is_closed = raw.QueueIsClosedV2(handle=resource)
                self._cancel = raw.QueueCloseV2(handle=resource, cancel_pending_enqueues=True)
                self._dequeue = self._dequeue_op(resource)

    def _dequeue_op(self, resource: tf.Tensor) -> tf.Operation:
        types = list(self.op.get_attr("component_types"))
        if self.op.type == "PriorityQueueV2":
            types = [tf.int64] + types  # the priority comes first
        return tf.raw_ops.QueueDequeueV2(handle=resource, component_types=types)[0].op

    def size(self, sess: tf.Session) -> int:
        """How many elements the queue holds."""
        return int(sess.run(self._size))

    def is_closed(self, sess: tf.Session) -> bool:
        """Whether the queue has been closed."""
        return bool(sess.run(self._is_closed))

    def close(self, sess: tf.Session, cancel: bool = False) -> None:
        """Lets nothing more into the queue; what is in it can still be taken out. May be called
        again.

        Without `cancel` this waits, behind everybody who waits to get in. With it, those fail and
        it returns at once; TensorFlow says nothing about them, since the queue is closed by then.
        """
        if cancel:
            sess.run(self._cancel)
            return
        try:
            if not self.is_closed(sess):
                sess.run(self._close)
        except tf.errors.CancelledError:
            if not self.is_closed(sess):  # it was not somebody else who was quicker
                raise

    def drain_until(self, sess: tf.Session, done: Callable[[], bool], timeout: float) -> bool:
        """Makes room whenever the queue is full, until `done()` or for `timeout` seconds.

        Only to be called when nobody else dequeues any more.

        Returns:
          the last `done()`.
        """
        deadline = time.monotonic() + timeout
        while not done():
            if time.monotonic() > deadline:
                return False
            if not self.make_room(sess):
                time.sleep(_POLL_SECONDS)
        return True

    def make_room(self, sess: tf.Session) -> bool:
        """Takes one element out if the queue is full; returns whether it was."""
        if self.capacity <= 0:
            return False
        with _drain_locks.get(self.op.graph):
            full = self.size(sess) >= self.capacity
            if full:
                sess.run(self._dequeue)
            return full


def all_queues(graph: tf.Graph) -> List[QueueControl]:
    """Returns a control for each queue in the graph."""
    ops = [op for op in graph.get_operations() if op.type in _QUEUE_OPS]
    with graph.as_default():
        return [QueueControl(op) for op in ops]
