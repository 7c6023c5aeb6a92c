"""Measures, in the graph, how long a step waits for what it takes out of a queue."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.dependency import dependency_of_targets

__all__ = ["WaitProbe", "WaitReading", "wait_probes"]


class WaitReading(NamedTuple):
    """What a probe has found in one run of the session."""

    seconds: float  # from the begin of the run to the last dequeue
    fill: Optional[float]  # of the queue behind the dequeue, in [0, 1]; None if it has no limit


class WaitProbe:
    """Two clocks and the size of a queue: one clock at the begin of a run, one behind a dequeue.

    Its ops run only where they are fetched, and otherwise cost nothing. Fetching them makes the
    dequeues run, so fetch them only along with something that takes the datapoints anyway, see
    `belongs_to`. Made in the scope in which its ops are to be; the graph remembers it, see
    `wait_probes`.

    Args:
      queue: the `tf.QueueBase`.
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
        """Looks at a dequeue as well, of which these are the values."""
        self._dequeues.append(dequeued[0].op)
        with tf.name_scope(None), tf.control_dependencies(dequeued):
            self._ends.append(tf.timestamp(name="QueueInput/wait_end"))
        with tf.name_scope(None), tf.control_dependencies(self._ends):
            self._size = self._queue.size(name="QueueInput/size_behind")

    def belongs_to(self, op: tf.Operation) -> bool:
        """Whether all that is looked at runs with this op, so that to look takes nothing more."""
        return bool(self._dequeues) and all(
            dependency_of_targets([op], each) for each in self._dequeues
        )

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
