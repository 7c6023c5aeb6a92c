"""The variables `W` and `b` of layers with a kernel, and their output op, `<layer>/output`."""

import inspect
from typing import Any, Callable, List, Optional, Tuple

from tensorpack.compat import tfv1 as tf

from .registry import VariableHolder


def he_normal() -> Any:
    """Returns He's initializer: an untruncated normal distribution of variance 2 / fan-in."""
    return tf.variance_scaling_initializer(2.0, mode="fan_in", distribution="untruncated_normal")


def get_weights(
    inputs: tf.Tensor,
    kernel_shape: List[int],
    use_bias: bool,
    kernel: Tuple[Any, Any],
    bias: Tuple[Any, Any],
    outputs: Optional[int] = None,
) -> VariableHolder:
    """Gets `W` and `b` from the current variable scope.

    Args:
      kernel, bias: their initializer and regularizer; `b` is zero by default.
      outputs: the size of `b`; by default the last of `kernel_shape`.
    """
    for init in (kernel[0], bias[0]):
        if isinstance(init, (bool, str)):
            raise TypeError(f"An initializer cannot be {init!r}: pass options after sizes by name.")
    dtype = inputs.dtype.base_dtype
    weights = VariableHolder(W=tf.get_variable("W", kernel_shape, dtype, *kernel))
    if use_bias:
        size, initializer = outputs or kernel_shape[-1], bias[0] or tf.zeros_initializer()
        weights.b = tf.get_variable("b", [size], dtype, initializer, bias[1])
    return weights


def finish(
    tensor: tf.Tensor,
    weights: VariableHolder,
    activation: Optional[Callable[..., Any]],
    activity_regularizer: Optional[Callable[..., Any]],
    data_format: str = "NHWC",
) -> tf.Tensor:
    """Adds the bias and the activation; returns the op `output`, which carries `.variables`."""
    if hasattr(weights, "b"):
        tensor = tf.nn.bias_add(tensor, weights.b, data_format=data_format)
    output = activate(tensor, activation)
    loss = None if activity_regularizer is None else activity_regularizer(output)
    if loss is not None:  # as of a regularizer of slim with the scale 0
        examples = tf.cast(tf.maximum(tf.shape(output)[0], 1), loss.dtype)  # of none it is no NaN
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, loss / examples)
    output.variables = weights
    return output


def activate(tensor: tf.Tensor, activation: Optional[Callable[..., Any]] = None) -> tf.Tensor:
    """Returns `activation(tensor)` as the op `output` of the current name scope.

    It is called with `name="output"` if it has a parameter `name`; None is the identity. If it
    gives that name to something else, such as a layer inside of it, the result is `output_1`.
    """
    if activation is None:
        return tf.identity(tensor, name="output")
    if isinstance(activation, str):
        activation = getattr(tf.nn, activation)
    graph = tf.get_default_graph()
    name = graph.unique_name("output", mark_as_used=False)
    result = activation(tensor, name="output") if _takes_name(activation) else activation(tensor)
    return result if result.op.name == name else tf.identity(result, name="output")


def _takes_name(function: Callable[..., Any]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("name")
    except (TypeError, ValueError):  # functions written in C have no signature
        return False
    keyword_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return parameter is not None and parameter.kind in keyword_kinds
