"""The fully connected layer."""

from typing import Any, Callable, List, Optional

import numpy as np

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
    flat = _flatten(check_floating("FullyConnected", tf.convert_to_tensor(inputs)))
    weights = get_weights(
        flat,
        [flat.shape.as_list()[1], units],
        use_bias,
        (kernel_initializer or he_normal(), kernel_regularizer),
        (bias_initializer, bias_regularizer),
    )
    return finish(tf.matmul(flat, weights.W), weights, activation, activity_regularizer)


def _flatten(tensor: tf.Tensor) -> tf.Tensor:
    """Reshapes `[N, ...]` to `[N, M]`."""
    rank = tensor.shape.ndims
    sizes: List[Any] = tensor.shape.as_list()[1:] if rank else [None]
    if None in sizes:
        raise ValueError(
            f"FullyConnected needs an input whose dimensions are known, except the first; got "
            f"{tensor.name} with shape {tensor.shape}. Set them with set_shape(), or pool over the "
            "image first."
        )
    if rank == 2:
        return tensor
    return tf.reshape(tensor, [-1, int(np.prod(sizes, dtype=np.int64))])
