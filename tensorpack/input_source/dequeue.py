"""Measures, in the graph, how many datapoints a step takes from a queue and how long it waits."""

from typing import Any, List, Optional, Sequence

from tensorpack.compat import run_after
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.dependency import dependency_of_targets


class ConsumedCount:
    """A local int64 variable that each dequeue advances by the number of its datapoints.

    It advances after the dequeue, so not if that fails, and before anything that depends on the
    datapoints: when a step is over, it is exact. Made in the scope of its ops.

    Attributes:
      per_run: how many datapoints the dequeues made so far take.
      ahead: how many wait between the dequeues and the count; set by `StagingInput`.
      deferred: whether datapoints wait somewhere before their step, so that only `count` counts
        them; set by `StagingInput`.
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
        self._dequeues: List[tf.Operation] = []
        self.per_run = 0
        self.ahead = 0
        self.deferred = False

    def counted(self, components: Sequence[tf.Tensor], number: int) -> List[tf.Tensor]:
        """Returns the components of a dequeue of `number` datapoints; using one counts them."""
        self.per_run += number
        self._dequeues.append(components[0].op)
        _dequeues.get().append(components[0].op)
        if self.deferred:
            return list(components)
        with tf.control_dependencies([self.count(components, number)]):
            return [tf.identity(tensor) for tensor in components]

    def count(self, components: Sequence[tf.Tensor], number: int) -> tf.Operation:
        """Returns an op that counts `number` datapoints once `components` have values."""
        with tf.device(self._variable.device), tf.control_dependencies(components):
            return self._variable.assign_add(number, read_value=False)

    def keep_order(self) -> None:
        """Makes the dequeues of a run follow one another, in the order in which they were made."""
        for first, then in zip(self._dequeues, self._dequeues[1:]):
            run_after(then, first)

    def reset(self, sess: Any) -> None:
        """Begins to count from zero, also where local variables have no values yet."""
        sess.run(self._variable.initializer)

    def read(self, sess: Any) -> int:
        return int(sess.run(self._value))


_dequeues: PerGraph[List[tf.Operation]] = PerGraph(list)


def wait_clocks(step: Optional[tf.Operation], fed: bool) -> List[tf.Tensor]:
    """Returns float64 seconds: when a run begins, and when each dequeue of a step has its data.

    Fetch them only along with the step, since they run its dequeues. The list is empty if none is
    seen, and has only the beginning if the data is `fed`.
    """
    dequeues = [] if step is None or fed else _dequeues.get(step.graph)
    with tf.control_dependencies(None):
        clocks = [tf.timestamp(name="begin")]
    for op in dequeues:
        if dependency_of_targets([step], op):
            with tf.device(op.device), tf.control_dependencies([op]):
                clocks.append(tf.timestamp(name="end"))
    return clocks if step is not None and (fed or len(clocks) > 1) else []
