"""The last op of a layer: its activation, named so that users find it, `<layer>/output`."""

import inspect
from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf

__all__ = ["activate"]


def activate(tensor: tf.Tensor, activation: Optional[Callable[..., Any]] = None) -> tf.Tensor:
    """Returns `activation(tensor)` as the op `output` of the current name scope.

    Args:
      tensor: what the layer has computed so far.
      activation: a function of a tensor, and of `name` if it likes (it is then called with
        `name="output"`); None for none.

    Raises:
      TypeError: the activation cannot be called or returns something else than a tensor.
      ValueError: the activation gives the name `output` to an op that is not its result.
    """
    if activation is None:
        return tf.identity(tensor, name="output")
    if not callable(activation):
        raise TypeError(
            f"activation must be a function of a tensor, such as tf.nn.relu; got {activation!r}."
        )
    graph = tf.get_default_graph()
    wanted = graph.unique_name("output", mark_as_used=False)
    result = activation(tensor, name="output") if _takes_name(activation) else activation(tensor)
    if not isinstance(result, tf.Tensor):
        raise TypeError(f"activation {activation!r} must return a tensor, it returned {result!r}.")
    if result.op.name == wanted:
        return result
    if graph.unique_name("output", mark_as_used=False) != wanted:
        raise ValueError(
            f"activation {activation!r} gave the name {wanted!r} to an op that is not its result "
            f"({result.op.name}). "
            "Let it pass `name` to its last op, or take no argument `name`."
        )
    return tf.identity(result, name="output")


def _takes_name(function: Callable[..., Any]) -> bool:
    """Whether the function has a parameter of its own called `name`."""
    try:
        parameter = inspect.signature(function).parameters.get("name")
    except (TypeError, ValueError):  # no signature to look at, as with functions written in C
        return False
    keyword_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return parameter is not None and parameter.kind in keyword_kinds
