"""Measures, in the graph, how many datapoints a step takes from a queue and how long it waits."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

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
        if self.deferred:
            return list(components)
        with tf.control_dependencies([self.count(components, number)]):
            return [tf.identity(each) for each in components]

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


class WaitReading(NamedTuple):
    """What a probe measured in one run of the session."""

    seconds: float  # from the begin of the run to the last dequeue
    fill: Optional[float]  # of the queue after the dequeue, in [0, 1]; None if it has no limit


class WaitProbe:
    """Two clocks and the size of a queue: one clock at the begin of a run, one after a dequeue.

    Its ops run only where they are fetched, and otherwise cost nothing. Fetching them runs the
    dequeues, so fetch them only along with an op that takes the datapoints anyway, see
    `belongs_to`. Made in the scope of its ops; `wait_probes` returns those of a graph.
    """

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._capacity = queue.queue_ref.op.get_attr("capacity")
        with tf.control_dependencies(None):
            self._begin = tf.timestamp(name="wait_begin")
        self._ends: List[tf.Tensor] = []
        self._dequeues: List[tf.Operation] = []
        self._size: Any = None
        _probes.get().append(self)

    def watch(self, dequeued: Sequence[tf.Tensor]) -> None:
        """Adds a dequeue, of which these are the values."""
        self._dequeues.append(dequeued[0].op)
        with tf.name_scope(None), tf.control_dependencies(dequeued):
            self._ends.append(tf.timestamp(name="QueueInput/wait_end"))
        with tf.name_scope(None), tf.control_dependencies(self._ends):
            self._size = self._queue.size(name="QueueInput/size_behind")

    def belongs_to(self, op: tf.Operation) -> bool:
        """Whether all dequeues run with this op, so that measuring them takes nothing more."""
        needed = [dependency_of_targets([op], each) for each in self._dequeues]
        return bool(needed) and all(needed)

    @property
    def fetches(self) -> Dict[str, Any]:
        """What to run along with a step; `read` takes the values."""
        return {"begin": self._begin, "ends": list(self._ends), "size": self._size}

    def read(self, values: Dict[str, Any]) -> WaitReading:
        """Returns what the values of `fetches` say."""
        # The clock may be set back, and where nothing waits, the second one may even read first.
        seconds = max(0.0, float(max(values["ends"]) - values["begin"]))
        fill = float(values["size"]) / self._capacity if self._capacity > 0 else None
        return WaitReading(seconds, fill)


_probes: PerGraph[List[WaitProbe]] = PerGraph(list)


def wait_probes(graph: tf.Graph) -> List[WaitProbe]:
    """Returns the probes of a graph, in the order in which they were made."""
    return list(_probes.get(graph))
