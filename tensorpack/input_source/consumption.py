"""Counts, in the graph, the datapoints that have come out of a queue and into a step."""

from typing import Any, List, Sequence

from tensorpack.compat import tfv1 as tf

__all__ = ["ConsumedCount"]


class ConsumedCount:
    """A local int64 variable that each dequeue advances by the number of its datapoints.

    It advances after the dequeue, so not if that fails, and before anything that depends on the
    datapoints: when a step is over, it is exact. Made in the scope in which its ops are to be.

    Attributes:
      per_run: how many datapoints all dequeues take that were made so far.
      ahead: how many wait between the dequeues and the count; set by whoever lets them wait.
    """

    def __init__(self) -> None:
        self._variable = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            use_resource=True,
            name="consumed",
        )
        self._value = self._variable.read_value()
        self.per_run = 0
        self.ahead = 0
        self._deferred = False

    def defer(self) -> None:
        """Leaves the counting to `count`, for datapoints that wait somewhere before their step."""
        self._deferred = True

    def counted(self, components: Sequence[tf.Tensor], number: int) -> List[tf.Tensor]:
        """Returns what a dequeue gave, to be had only once its `number` datapoints are counted,
        unless `defer` was called.
        """
        self.per_run += number
        if self._deferred:
            return list(components)
        with tf.control_dependencies([self.count(components, number)]):
            return [tf.identity(each) for each in components]

    def count(self, components: Sequence[tf.Tensor], number: int) -> tf.Operation:
        """Returns an op that counts `number` datapoints once `components` have values."""
        with tf.device(self._variable.device), tf.control_dependencies(components):
            return self._variable.assign_add(number, read_value=False)

    def reset(self, sess: Any) -> None:
        """Begins to count from zero, also in a session whose local variables have no values."""
        sess.run(self._variable.initializer)

    def read(self, sess: Any) -> int:
        """Returns the count."""
        return int(sess.run(self._value))
