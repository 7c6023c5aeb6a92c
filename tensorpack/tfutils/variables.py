"""Which variable corresponds to which: recorded as objects when they are made, not by name.

A target network, for example, is the online network built once more under a scope of its own::

    value, online = record_variables(network, state)
    target_value, pairs = build_twin("target", network, next_state, source=online)
    copy = pairs.copy_op("update_target_network")
"""

from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from tensorpack.compat import tfv1 as tf

from .varreplace import custom_getter_scope


class VariablePairs:
    """Pairs of variables, alike in shape and dtype: a target, and the source that it is set from.

    Iterating gives `(target, source)`.

    Args:
      targets: variables that are to be set.
      sources: variables to set them from, in the same order.
    """

    def __init__(self, targets: Sequence[tf.Variable], sources: Sequence[tf.Variable]) -> None:
        if len(targets) != len(sources):
            raise ValueError(
                f"{len(targets)} variables ({_names(targets)}) cannot be paired with "
                f"{len(sources)} ({_names(sources)})."
            )
        for target, source in zip(targets, sources):
            if _signature(target) != _signature(source):
                raise ValueError(
                    f"{target.op.name}, {_signature(target)}, cannot be set from "
                    f"{source.op.name}, {_signature(source)}."
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
      scope: name of the variable scope.
      func: called with `args`; must ask for the same variables as when `source` was recorded.
      *args: for the function.
      source: the variables of the first set, from `record_variables`.

    Returns:
      What the function returns, and the pairs of new variables with those of `source`.

    Raises:
      ValueError: it makes other variables than `source`.
    """

    def untrainable(getter: Callable[..., Any], *getter_args: Any, **getter_kwargs: Any) -> Any:
        getter_kwargs["trainable"] = False
        return getter(*getter_args, **getter_kwargs)

    with tf.variable_scope(scope), custom_getter_scope(untrainable):
        result, variables = record_variables(func, *args)
    return result, VariablePairs(variables, source)


def _names(variables: Sequence[tf.Variable]) -> str:
    return ", ".join(each.op.name for each in variables) or "none"


def _signature(variable: tf.Variable) -> str:
    return f"{variable.dtype.base_dtype.name} {variable.shape.as_list()}"
