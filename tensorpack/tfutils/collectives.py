"""Sums over the training towers of a graph, and over the workers of a group, with gradients.

Towers are built one after the other, so what a tower adds to a sum exists before the other terms
do. The result begins as the tower's own term; each tower that comes later replaces it, in all
towers, by the sum over those that there are. So it takes no op of its own kind and no particular
devices, and a tower that is run alone brings the terms of the others along.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

from tensorpack.compat import in_branch, replace_input
from tensorpack.compat import tfv1 as tf

from .common import PerGraph
from .tower import get_current_tower_context

AddUp = Callable[[tf.Tensor], tf.Tensor]

_of_workers: PerGraph[List[AddUp]] = PerGraph(list)
_sums: "PerGraph[Dict[str, _CrossTowerSum]]" = PerGraph(dict)


def add_up_workers_by(add_up: AddUp) -> None:
    """Says what makes the ops of a sum over the workers of the default graph, before there is one.
    Each worker builds the same graph, but for the devices.
    """
    _of_workers.get().append(add_up)


def has_workers() -> bool:
    """Returns whether the default graph is that of one of several workers."""
    return bool(_of_workers.get())


def has_other_terms(workers: bool = False) -> bool:
    """Returns whether other towers, or workers, may contribute to a sum made now."""
    context = get_current_tower_context()
    if context is None or not context.is_training:
        return False
    return bool(context.ns_name) or (workers and has_workers())  # the only tower has no name


def sum_over_towers(tensor: tf.Tensor, workers: bool = False) -> tf.Tensor:
    """Returns the sum of a tensor over the training towers, on the device of this one.

    It must be called in each of the towers, and gradients be asked for equally often in each. The
    gradient is the sum of the gradients, so those of the towers' costs are to be averaged. Outside
    a training tower it returns the tensor.

    Args:
      tensor: of a dtype and a shape that are the same in each tower.
      workers: whether to add up over the workers of the group as well.
    """
    context = get_current_tower_context()
    if context is None or not has_other_terms(workers):
        return tensor
    if in_branch():
        raise ValueError(
            f"{tensor.name} is to be added up over the towers in a branch of tf.cond or "
            "tf.while_loop, which another tower may not take: do it outside of it."
        )
    with tf.name_scope("sum_over_towers") as scope:
        name = scope[len(context.ns_name) :]
    sums = _sums.get()
    if name not in sums or context.index in sums[name].terms:
        sums[name] = _CrossTowerSum(workers and has_workers())
    return _add_up(tensor, sums[name], context.index)


class _CrossTowerSum:
    """One sum over the towers, and those that its gradients make.

    Attributes:
      terms: what each tower adds, by its index.
    """

    def __init__(self, workers: bool) -> None:
        self.terms: Dict[int, tf.Tensor] = {}
        self._workers = workers
        self._results: List[tf.Operation] = []  # what takes the sum over the towers
        self._of_all: Optional[tf.Tensor] = None  # the sum over the workers, if there are any
        self._gradients: List[_CrossTowerSum] = []

    def enter(self, index: int, term: tf.Tensor, result: tf.Operation) -> None:
        """Adds the term of a tower, and replaces the input of its result by the sum."""
        self.terms[index] = term
        terms = [self.terms[i] for i in sorted(self.terms)]
        where = terms[len(_sums.get()) % len(terms)]  # the sums take turns
        graph = tf.get_default_graph()
        with graph.control_dependencies(None), graph.colocate_with(where.op, ignore_existing=True):
            total = tf.add_n(terms, name="total") if len(terms) > 1 else term
            if self._workers and self._of_all is None:  # made once, whichever towers come later
                of_worker = tf.identity(term, name="of_worker")
                self._results.append(of_worker.op)
                with graph.colocate_with(None, ignore_existing=True):  # it may be on the CPU alone
                    self._of_all = _of_workers.get()[-1](of_worker)
        if self._of_all is None:
            self._results.append(result)
        else:
            replace_input(result, 0, self._of_all)
        for op in self._results:
            replace_input(op, 0, total)

    def gradient_of(self, index: int) -> "_CrossTowerSum":
        """Returns the sum to which a tower's next gradient belongs."""
        for gradient in self._gradients:
            if index not in gradient.terms:
                return gradient
        self._gradients.append(_CrossTowerSum(self._workers))
        return self._gradients[-1]


def _add_up(tensor: tf.Tensor, over_towers: _CrossTowerSum, index: int) -> tf.Tensor:
    results = []

    @tf.custom_gradient
    def add_up(term: tf.Tensor) -> Tuple[tf.Tensor, Any]:
        results.append(tf.identity(term, name="sum"))
        return results[0], lambda grad: _add_up(grad, over_towers.gradient_of(index), index)

    total = add_up(tensor)
    # Afterwards, as `custom_gradient` looks for variables among all that the result depends on.
    over_towers.enter(index, tensor, results[0].op)
    return total
