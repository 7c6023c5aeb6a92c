"""What of a training graph is on parameter servers: variables, and the turns of the workers."""

from typing import Any, List, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import root_variable
from tensorpack.tfutils.variables import VariablePairs


def is_on_server(variable: tf.Variable) -> bool:
    """Whether a variable is on a parameter server."""
    return tf.DeviceSpec.from_string(variable.device).job == "ps"


def copies_on_server(
    variables: Sequence[tf.Variable], names: Sequence[str], device: Any
) -> List[tf.Variable]:
    """Returns a new variable on a device for each, with the same initial value."""
    options = {"collections": [], "use_resource": True}
    with tf.device(device):
        return [
            root_variable(name, None, None, var.initial_value, **options)
            for var, name in zip(variables, names)
        ]


def is_assigned(variable: tf.Variable) -> bool:
    """Whether an op of the graph sets a variable, apart from its initialiser."""
    users = [op for op in variable.op.outputs[0].consumers() if op is not variable.initializer]
    return any("Assign" in op.type or "Scatter" in op.type for op in users)


def move_to_servers(variables: Sequence[tf.Variable], prefix: str, setter: Any) -> VariablePairs:
    """Makes copies of variables on parameter servers, without the prefix of their names. These take
    their places in all collections; the variables become local. Returns the pairs (variable, copy).
    """
    new = copies_on_server(variables, [var.op.name[len(prefix) :] for var in variables], setter)
    copies = {id(var): copy for var, copy in zip(variables, new)}
    graph = tf.get_default_graph()
    for key in graph.get_all_collection_keys():
        members = graph.get_collection_ref(key)
        members[:] = [copies.get(id(var), var) for var in members]
    graph.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES).extend(variables)
    return VariablePairs(variables, new)


class StepTurns:
    """Queues on a server, by which the workers update in the order of their numbers, and begin the
    next step when all have read the result. The sum of their flags, float32 `[workers]`, travels
    with the turn.

    Args:
      key: a number that is the same on all workers, and of this run only.
    """

    def __init__(self, device: str, index: int, number: int, key: int) -> None:
        self._device, self._index, self._number = device, index, number

        def make_queue(name: str) -> Any:
            return tf.FIFOQueue(number + 1, [tf.float32], [[number]], shared_name=name, name=name)

        with tf.device(device):
            self._turns = [make_queue(f"turn{key}_{i}") for i in range(number)]
            self._ends = [make_queue(f"end{key}_{i}") for i in range(number)]

    def begin(self) -> tf.Tensor:
        """Returns the flags of those who have updated in this step, when this worker may. The first
        one may when each has run `finish` once more: at the start, and after each step.
        """
        waits_for = 1 if self._index else self._number
        with tf.device(self._device):
            return tf.reduce_sum(self._turns[self._index].dequeue_many(waits_for), 0)

    def end(self, flags: tf.Tensor, updated: tf.Operation) -> tf.Tensor:
        """Returns the flags of all workers, when all have updated; `flags` are with this one's."""
        with tf.device(self._device), tf.control_dependencies([updated]):
            next_ones = self._turns[self._index + 1 :][:1] or self._ends
            passed = [queue.enqueue(flags) for queue in next_ones]
            with tf.control_dependencies(passed):
                return self._ends[self._index].dequeue()

    def finish(self, read: Sequence[tf.Operation]) -> tf.Operation:
        """Returns an op that tells, after `read`, that this worker has read the variables."""
        with tf.device(self._device), tf.control_dependencies(read):
            return self._turns[0].enqueue(tf.zeros([self._number]))
