"""What of a training graph is on parameter servers: variables, and the turns of the workers."""

from typing import Any, Dict, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import root_variable
from tensorpack.tfutils.variables import VariablePairs

from .table import shared_variable, vote_tensor


def is_on_server(variable: tf.Variable) -> bool:
    """Whether a variable is on a parameter server."""
    return tf.DeviceSpec.from_string(variable.device).job == "ps"


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
    copies: Dict[int, tf.Variable] = {}
    for each in variables:
        name = each.op.name[len(scope) + 1 :]
        options = {"initializer": each.initial_value, "collections": [], "use_resource": True}
        with tf.device(setter):
            copies[id(each)] = root_variable(name, None, None, **options)
    graph = tf.get_default_graph()
    for key in graph.get_all_collection_keys():
        members = graph.get_collection_ref(key)
        members[:] = [copies.get(id(each), each) for each in members]
    graph.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES).extend(variables)
    return VariablePairs(list(variables), [copies[id(each)] for each in variables])


class StepTurns:
    """Lets the workers update in turn, and continue when all have read the result.

    In each step a worker waits for its turn, updates, and ends its turn. When the last one has,
    each reads the variables; when all have read them, the first one may update again. So the order
    of the updates is always that of the workers. Each wait is for a queue on the host.
    """

    def __init__(self, device: str, index: int, number: int, rows: int) -> None:
        self._device, self._index = device, index
        self._number, self._rows = number, rows
        with tf.device(device):
            self._turns = [_queue(f"turn_{i}", number) for i in range(number)]
            self._ends = [_queue(f"end_{i}", number) for i in range(number)]

    def wait(self) -> tf.Operation:
        """Returns an op that waits for the turn of this worker. That of the first one comes when
        each worker has run `finish` once more: at the start, and after each step.
        """
        with tf.device(self._device):
            if self._index == 0:
                return self._turns[0].dequeue_many(self._number).op
            return self._turns[self._index].dequeue().op

    def pass_on(self, updated: tf.Operation) -> tf.Operation:
        """Returns an op that ends the turn of this worker, after `updated`."""
        with tf.device(self._device), tf.control_dependencies([updated]):
            if self._index < self._number - 1:
                return self._turns[self._index + 1].enqueue(tf.constant(0, tf.int64))
            vote = vote_tensor(self._rows)
            return tf.group(*[each.enqueue(vote) for each in self._ends])

    def end(self, passed: tf.Operation) -> tf.Tensor:
        """Returns the signal by which the group is to end, or 0, when all have updated."""
        with tf.device(self._device), tf.control_dependencies([passed]):
            return self._ends[self._index].dequeue()

    def finish(self, read: Sequence[tf.Operation]) -> tf.Operation:
        """Returns an op that tells, after `read`, that this worker has read the variables."""
        with tf.device(self._device), tf.control_dependencies(read):
            return self._turns[0].enqueue(tf.constant(0, tf.int64))

    @staticmethod
    def closing(number: int) -> tf.Operation:
        """Returns an op that ends all waits; for another graph, under the device of the host."""
        names = [f"{kind}_{i}" for kind in ("turn", "end") for i in range(number)]
        queues = [_queue(name, number) for name in names]
        return tf.group(*[each.close(cancel_pending_enqueues=True) for each in queues])


class StartValues:
    """Gives other workers the values with which the chief's own variables start."""

    def __init__(self, variables: Sequence[tf.Variable], device: str) -> None:
        self._known, self._gives, self._takes = [], [], []
        for each in variables:
            name, dtype = f"tensorpack_start/{each.op.name}", each.dtype.base_dtype
            with tf.device(device):
                there = shared_variable(name, dtype, each.shape)
                value = tf.raw_ops.ReadVariableOp(resource=there, dtype=dtype)
                self._known.append(tf.raw_ops.VarIsInitializedOp(resource=there))
            with tf.device(each.device):
                own = each.read_value()
                self._takes.append(each.assign(value, read_value=False))
            with tf.device(device):
                self._gives.append(tf.raw_ops.AssignVariableOp(resource=there, value=own))

    def give(self, sess: tf.Session) -> None:
        """Leaves the values; for the chief."""
        sess.run(self._gives)

    def take(self, sess: tf.Session) -> None:
        """Takes the values that the chief has left. A variable that it does not have stays."""
        sess.run([take for take, there in zip(self._takes, sess.run(self._known)) if there])


def _queue(name: str, number: int) -> Any:
    name = f"tensorpack_{name}"
    return tf.FIFOQueue(number + 1, [tf.int64], [[]], shared_name=name, name=name)
