"""Which variable corresponds to which: recorded as objects when they are made, not by name.

A target network, for example, is the online network built once more under a scope of its own::

    value, online = record_variables(network, state)
    target_value, pairs = build_twin("target", network, next_state, source=online)
    copy = pairs.copy_op("update_target_network")
"""

from typing import Any, Callable, Dict, Iterator, List, Sequence, Set, Tuple

from tensorpack.compat import tfv1 as tf

from .common import PerGraph
from .varreplace import custom_getter_scope


class VariablePairs:
    """Pairs of variables, alike in shape and dtype: a target, and the source that it is set from.

    Iterating gives `(target, source)`.
    """

    def __init__(self, targets: Sequence[tf.Variable], sources: Sequence[tf.Variable]) -> None:
        if len(targets) != len(sources):
            raise ValueError(
                f"{len(targets)} variables ({_names(targets)}) cannot be paired with "
                f"{len(sources)} ({_names(sources)})."
            )
        self._pairs = list(zip(targets, sources))

    def copy_op(self, name: str) -> tf.Operation:
        """Returns a new op of this name that sets every target to its source."""
        with tf.name_scope(name + "_copies"):
            copies = [target.assign(source, read_value=False) for target, source in self._pairs]
        return tf.group(*copies, name=name)

    def __iter__(self) -> Iterator[Tuple[tf.Variable, tf.Variable]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def record_variables(
    func: Callable[..., Any], *args: Any, **kwargs: Any
) -> Tuple[Any, List[tf.Variable]]:
    """Calls a function, and notes the variables that it gets from `tf.get_variable`.

    Returns:
      What the function returns, and the variables, new or reused, each once, in the order in which
      they were first asked for.
    """
    recorded: Dict[str, tf.Variable] = {}

    def recorder(getter: Callable[..., Any], *getter_args: Any, **getter_kwargs: Any) -> Any:
        variable = getter(*getter_args, **getter_kwargs)
        recorded.setdefault(variable.name, variable)
        return variable

    with custom_getter_scope(recorder):
        result = func(*args, **kwargs)
    return result, list(recorded.values())


def build_twin(
    scope: str, func: Callable[..., Any], *args: Any, source: Sequence[tf.Variable]
) -> Tuple[Any, VariablePairs]:
    """Calls a function under a variable scope, so that it makes a second, untrainable set.

    Args:
      func: called with `args`; must ask for the same variables as when `source` was recorded.
      source: the variables of the first set, from `record_variables`.

    Returns:
      What the function returns, and the pairs of new variables with those of `source`.
    """

    def untrainable(getter: Callable[..., Any], *getter_args: Any, **getter_kwargs: Any) -> Any:
        getter_kwargs.update(trainable=False, regularizer=None)  # TensorFlow would add its cost
        return getter(*getter_args, **getter_kwargs)

    with tf.variable_scope(scope), custom_getter_scope(untrainable):
        result, variables = record_variables(func, *args)
    return result, VariablePairs(variables, source)


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
        """
        for copy, main in VariablePairs(copies, mains):
            self._main_of[id(copy)] = (copy, main)
            if slots:
                self._slots.add(id(copy))
        graph = tf.get_default_graph()
        for key in graph.get_all_collection_keys():
            members = graph.get_collection_ref(key)
            members[:] = [item for item in members if id(item) not in self._main_of]
        local = graph.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES)
        local += [copy for copy, _ in self._main_of.values()]

    def main_of(self, variable: tf.Variable) -> tf.Variable:
        """Returns the main variable of a copy, and any other variable as it is."""
        return self._main_of.get(id(variable), (None, variable))[1]

    def untrained(self) -> List[Tuple[tf.Variable, tf.Variable]]:
        """Returns the copies that no optimizer updates, each with its main variable."""
        updated = {id(var) for var in tf.trainable_variables()} | self._slots
        pairs = self._main_of.values()
        return [(copy, main) for copy, main in pairs if not {id(copy), id(main)} & updated]

    def copies_of(self, variable: tf.Variable) -> List[tf.Variable]:
        """Returns the copies of a main variable."""
        return [copy for copy, main in self._main_of.values() if main is variable]

    def align(self, towers: Sequence[Sequence[Tuple[Any, Any]]]) -> List[List[Tuple[Any, Any]]]:
        """Returns the (gradient, variable) of each tower in the order of those of the first one."""
        main = {id(variable): variable.op.name for _, variable in towers[0]}
        aligned = []
        for index, tower in enumerate(towers):
            pairs = {id(self.main_of(var)): (grad, var) for grad, var in tower}
            lacks = [name for key, name in main.items() if key not in pairs]
            more = [var.op.name for key, (_, var) in pairs.items() if key not in main]
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


def _names(variables: Sequence[tf.Variable]) -> str:
    return ", ".join(var.op.name for var in variables) or "none"
