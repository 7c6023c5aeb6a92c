"""What of a training graph is on parameter servers: variables, and the turns of the workers."""

from typing import Any, Callable, List, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import root_variable
from tensorpack.tfutils.variables import VariablePairs


def is_on_server(variable: tf.Variable) -> bool:
    """Whether a variable is on a parameter server."""
    return tf.DeviceSpec.from_string(variable.device).job == "ps"


def copies_on_server(
    variables: Sequence[tf.Variable], device: Any, rename: Callable[[str], str]
) -> List[tf.Variable]:
    """Returns a new variable on a device for each, with the same initial value."""
    options = {"collections": [], "use_resource": True}
    with tf.device(device):
        return [
            root_variable(rename(var.op.name), None, None, var.initial_value, **options)
            for var in variables
        ]


def is_assigned(variable: tf.Variable) -> bool:
    """Whether an op of the graph sets a variable, apart from its initialiser."""
    users = [op for op in variable.op.outputs[0].consumers() if op is not variable.initializer]
    return any("Assign" in op.type or "Scatter" in op.type for op in users)


def move_to_servers(variables: Sequence[tf.Variable], scope: str, setter: Any) -> VariablePairs:
    """Makes global copies of variables on parameter servers, and makes the variables local.

    A copy is in the collections that its variable was in, and starts with the same initial value.

    Args:
      scope: the variable scope that they are in and the copies are not.

    Returns:
      the pairs (variable, copy).
    """
    new = copies_on_server(variables, setter, lambda name: name[len(scope) + 1 :])
    copies = {id(var): copy for var, copy in zip(variables, new)}
    graph = tf.get_default_graph()
    for key in graph.get_all_collection_keys():
        members = graph.get_collection_ref(key)
        members[:] = [copies.get(id(var), var) for var in members]
    graph.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES).extend(variables)
    return VariablePairs(list(variables), new)


class StepTurns:
    """Lets the workers update in turn, and continue when all have read the result.

    In each step a worker waits for its turn, updates, and ends its turn. When the last one has,
    each reads the variables; when all have read them, the first one may update again. So the order
    of the updates is always that of the workers. Each wait is for a queue on the host; what comes
    out of it are the flags of the workers that have updated, float32 `[workers]`.

    Args:
      key: a number that is the same on all workers, and of this run only.
    """

    def __init__(self, device: str, index: int, number: int, key: int) -> None:
        self._device, self._index, self._number = device, index, number
        with tf.device(device):
            self._turns = [_queue(f"turn{key}_{i}", number) for i in range(number)]
            self._ends = [_queue(f"end{key}_{i}", number) for i in range(number)]

    def update(self, apply: Callable[[], tf.Operation], flags: tf.Tensor) -> tf.Tensor:
        """Returns the flags of all workers, when all have updated.

        Args:
          apply: returns the op that updates, when the turn of this worker has come. That of the
            first one comes when each worker has run `finish` once more: at the start, and after
            each step.
          flags: those of this worker.
        """
        queue, index = self._turns[self._index], self._index
        with tf.device(self._device):
            first = index == 0
            before = (
                tf.reduce_sum(queue.dequeue_many(self._number), 0) if first else queue.dequeue()
            )
        with tf.control_dependencies([before]):
            updated = apply()
        with tf.device(self._device), tf.control_dependencies([updated]):
            next_ones = self._turns[index + 1 :][:1] or self._ends
            passed = [queue.enqueue(before + flags) for queue in next_ones]
        with tf.device(self._device), tf.control_dependencies(passed):
            return self._ends[index].dequeue()

    def finish(self, read: Sequence[tf.Operation]) -> tf.Operation:
        """Returns an op that tells, after `read`, that this worker has read the variables."""
        with tf.device(self._device), tf.control_dependencies(read):
            return self._turns[0].enqueue(tf.zeros([self._number]))


def _queue(name: str, number: int) -> Any:
    name = f"tensorpack_{name}"
    return tf.FIFOQueue(number + 1, [tf.float32], [[number]], shared_name=name, name=name)
