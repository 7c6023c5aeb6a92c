"""Does this fetch depend on that tensor? Asked of the graph, without running it."""

from operator import attrgetter
from typing import Any, Dict, FrozenSet, Iterable, List, Sequence, Set, Tuple, Union

from tensorpack.compat import tfv1 as tf

from .common import PerGraph

OpOrTensor = Union[tf.Operation, tf.Tensor, tf.Variable]

_OP = attrgetter("op")
_known: PerGraph[Dict[Tuple[FrozenSet[str], str], bool]] = PerGraph(dict)


def ancestors(targets: Iterable[OpOrTensor], fed: Iterable[OpOrTensor] = ()) -> List[tf.Operation]:
    """Returns all ops that run when these are computed, themselves included, in no order.

    The ops of tensors that are fed are among them; what these depend on is not.
    """
    found: Set[tf.Operation] = set(_ops_of(fed)) if fed else set()
    waiting: List[Any] = list(targets)
    while waiting:
        op = waiting.pop()
        op = op if isinstance(op, tf.Operation) else op.op
        if op not in found:
            found.add(op)
            waiting += map(_OP, op.inputs)
            waiting += op.control_inputs
    return list(found)


def dependency_of_targets(targets: Sequence[OpOrTensor], op: OpOrTensor) -> bool:
    """Returns whether computing any of the targets makes `op` run. The answer is remembered."""
    (wanted,) = _ops_of([op])
    key = (frozenset(target.name for target in _ops_of(targets)), wanted.name)
    known = _known.get(wanted.graph)
    if key not in known:
        known[key] = wanted in ancestors(targets)
    return known[key]


def dependency_of_fetches(fetches: Any, op: OpOrTensor) -> bool:
    """Returns whether `Session.run(fetches)` makes `op` run, whatever kind of fetches they are."""
    return dependency_of_targets(ops_of_fetches(fetches, op.graph), op)


def ops_of_fetches(fetches: Any, graph: tf.Graph) -> List[tf.Operation]:
    """Returns the ops that compute fetches of whatever kind."""
    find = graph.as_graph_element
    return _ops_of([x if isinstance(x, tf.Variable) else find(x) for x in _flatten(fetches)])


def _flatten(fetches: Any) -> List[Any]:
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        return [leaf for part in fetches for leaf in _flatten(part)]
    if fetches is None:
        return []
    if isinstance(fetches, (str, tf.Operation, tf.Tensor, tf.Variable)):
        return [fetches]
    if isinstance(fetches, tf.IndexedSlices):  # also those whose shapes contradict each other
        return [fetches.values, fetches.indices]
    return list(tf.nest.flatten(fetches, expand_composites=True))  # such as tf.SparseTensor


def _ops_of(targets: Iterable[OpOrTensor]) -> List[tf.Operation]:
    """Returns the op of each tensor or variable; an op is its own."""
    return [target if isinstance(target, tf.Operation) else target.op for target in targets]
