"""The fully connected layer."""

from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count

from ._checks import check_floating
from ._legacy_names import RENAMED
from ._weights import finish, get_weights, he_normal
from .registry import layer_register


@layer_register(spelling=RENAMED["FullyConnected"])
def FullyConnected(
    inputs: tf.Tensor,
    units: int,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    activation: Optional[Callable[..., Any]] = None,
    use_bias: bool = True,
    *,
    kernel_regularizer: Optional[Callable[..., Any]] = None,
    bias_regularizer: Optional[Callable[..., Any]] = None,
    activity_regularizer: Optional[Callable[..., Any]] = None,
) -> tf.Tensor:
    """Multiplies each example, flattened, by a matrix.

    Variables: `W` `[inputs, units]`, `b` `[units]`. The other arguments are those of `Conv2D`.

    Args:
      inputs: floating `[N, ...]`; all dimensions except the first must be known.
      units: number of outputs.

    Returns:
      The op `<layer>/output`, `[N, units]`, with the `.variables` `W` and `b`.
    """
    units = as_count("FullyConnected", "units", units)
    inputs = check_floating("FullyConnected", inputs)
    size = inputs.shape[1:].num_elements() if inputs.shape.ndims else None
    if size is None:
        raise ValueError(
            f"FullyConnected needs an input whose dimensions are known, except the first; got "
            f"{inputs.name} with shape {inputs.shape}. Set them with set_shape(), or pool over the "
            "image first."
        )
    flat = inputs if inputs.shape.ndims == 2 else tf.reshape(inputs, [-1, size])
    weights = get_weights(
        flat,
        [size, units],
        use_bias,
        (kernel_initializer or he_normal(), kernel_regularizer),
        (bias_initializer, bias_regularizer),
    )
    return finish(tf.matmul(flat, weights.W), weights, activation, activity_regularizer)
