"""Copies of variables, one in each tower: which belongs to which, as objects."""

from typing import Any, Dict, List, Sequence, Set, Tuple

from tensorpack.compat import tfv1 as tf

from .common import PerGraph
from .variables import VariablePairs


class Replicas:
    """The copies of the variables of a graph, and the variable of the main tower behind each.

    A copy is a local variable, so that checkpoints have the main one alone, and it is in no other
    collection. It has its value from `sync_op`, and then from the same updates as the main one.
    """

    def __init__(self) -> None:
        self._main_of: Dict[int, Tuple[Any, Any]] = {}  # id of the copy: the copy, the main one
        self._slots: Set[int] = set()  # ids of the copies that are slots of an optimizer

    def add(self, copies: List[tf.Variable], mains: List[tf.Variable], slots: bool = False) -> None:
        """Records copies, and takes them out of all collections but that of local variables.

        Args:
          copies: the variables of a tower that is not the first.
          mains: those of the first one, in the same order.
          slots: whether these are slots of an optimizer.

        Raises:
          ValueError: a copy differs from its main variable in shape or dtype.
        """
        for copy, main in VariablePairs(copies, mains):
            self._main_of[id(copy)] = (copy, main)
            if slots:
                self._slots.add(id(copy))
        graph = tf.get_default_graph()
        for key in graph.get_all_collection_keys():
            members = graph.get_collection_ref(key)
            members[:] = [each for each in members if id(each) not in self._main_of]
        local = graph.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES)
        local += [copy for copy, _ in self._main_of.values()]

    def main_of(self, variable: tf.Variable) -> tf.Variable:
        """Returns the main variable of a copy, and any other variable as it is."""
        return self._main_of.get(id(variable), (None, variable))[1]

    def untrained(self) -> List[Tuple[tf.Variable, tf.Variable]]:
        """Returns the copies that no optimizer updates, such as averages of a layer, each with its
        main variable.
        """
        known = {id(each) for each in tf.trainable_variables()} | self._slots
        pairs = self._main_of.values()
        return [(copy, main) for copy, main in pairs if not {id(copy), id(main)} & known]

    def copies_of(self, variable: tf.Variable) -> List[tf.Variable]:
        """Returns the copies of a main variable."""
        return [copy for copy, main in self._main_of.values() if main is variable]

    def align(self, towers: Sequence[Sequence[Tuple[Any, Any]]]) -> List[List[Tuple[Any, Any]]]:
        """Returns the (gradient, variable) of each tower in the order of those of the first one.

        Raises:
          ValueError: a tower has gradients of other variables.
        """
        main = {id(variable): variable.op.name for _, variable in towers[0]}
        aligned = []
        for index, tower in enumerate(towers):
            pairs = {id(self.main_of(each[1])): each for each in tower}
            lacks = [name for key, name in main.items() if key not in pairs]
            more = [each.op.name for key, (_, each) in pairs.items() if key not in main]
            if lacks or more:
                raise ValueError(
                    f"Towers must have gradients of the same variables, but tower {index} has none "
                    f"of {', '.join(lacks) or 'no variable'}, and tower 0 none of "
                    f"{', '.join(more) or 'no variable'}. Build the same model in each tower."
                )
            aligned.append([pairs[key] for key in main])
        return aligned

    def sync_op(self, name: str = "sync_variables_from_main_tower") -> tf.Operation:
        """Returns a new op that sets each copy to its main variable."""
        pairs = list(self._main_of.values())
        return VariablePairs([copy for copy, _ in pairs], [main for _, main in pairs]).copy_op(name)


_replicas: PerGraph[Replicas] = PerGraph(Replicas)


def replicas() -> Replicas:
    """Returns the `Replicas` of the default graph."""
    return _replicas.get()
