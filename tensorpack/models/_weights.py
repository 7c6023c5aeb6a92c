"""The variables of a layer with a kernel: `W`, and `b` unless it goes without."""

from typing import Any, Callable, List, NamedTuple, Optional

from tensorpack.compat import tfv1 as tf

from ._output import activate
from .registry import VariableHolder

__all__ = ["Weights", "default_kernel_initializer", "finish", "get_weights"]


class Weights(NamedTuple):
    """Kernel and bias; the bias is None for a layer without."""

    kernel: Any
    bias: Any


def default_kernel_initializer() -> Any:
    """Returns He's initializer: a normal distribution, not truncated, of variance 2 / fan-in."""
    return tf.variance_scaling_initializer(2.0, mode="fan_in", distribution="untruncated_normal")


def get_weights(
    kernel_shape: List[int],
    outputs: int,
    dtype: tf.DType,
    use_bias: bool,
    kernel_initializer: Any,
    bias_initializer: Any,
    kernel_regularizer: Optional[Callable[..., Any]] = None,
    bias_regularizer: Optional[Callable[..., Any]] = None,
) -> Weights:
    """Makes or finds `W` and `b` in the current variable scope; `b` is zero by default."""
    kernel = tf.get_variable(
        "W", kernel_shape, dtype, initializer=kernel_initializer, regularizer=kernel_regularizer
    )
    if not use_bias:
        return Weights(kernel, None)
    if bias_initializer is None:
        bias_initializer = tf.zeros_initializer()
    bias = tf.get_variable(
        "b", [outputs], dtype, initializer=bias_initializer, regularizer=bias_regularizer
    )
    return Weights(kernel, bias)


def finish(
    tensor: tf.Tensor,
    weights: Weights,
    activation: Optional[Callable[..., Any]],
    activity_regularizer: Optional[Callable[..., Any]],
    data_format: str = "NHWC",
) -> tf.Tensor:
    """Adds the bias and the activation; returns the op `output`, which carries `.variables`."""
    if weights.bias is not None:
        tensor = tf.nn.bias_add(tensor, weights.bias, data_format=data_format)
    output = activate(tensor, activation)
    if activity_regularizer is not None:
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, activity_regularizer(output))
    output.variables = VariableHolder(W=weights.kernel)
    if weights.bias is not None:
        output.variables.b = weights.bias
    return output
