"""The fully connected layer."""

from typing import Any, Callable, List, Optional

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count

from ._checks import check_floating
from ._legacy_names import RENAMED
from ._weights import default_kernel_initializer, finish, get_weights
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

    Variables: `W` `[inputs, units]`, `b` `[units]`.

    Args:
      inputs: floating `[N, ...]`; all dimensions except the first must be known.
      units: number of outputs.
      kernel_initializer: of `W`; by default He's, an untruncated normal distribution of variance
        2 / fan-in.
      bias_initializer: of `b`; zeros by default.
      activation: a function of a tensor and, optionally, `name`.
      use_bias: whether to use `b`.
      kernel_regularizer: a function of `W`; its result is added to `REGULARIZATION_LOSSES`, as are
        those of the next two.
      bias_regularizer: a function of `b`.
      activity_regularizer: a function of the output.

    Returns:
      The op `<layer>/output`, `[N, units]`, with the `.variables` `W` and `b`.
    """
    units = as_count("FullyConnected", "units", units)
    flat = _flatten(check_floating("FullyConnected", tf.convert_to_tensor(inputs)))
    weights = get_weights(
        [flat.shape.as_list()[1], units],
        units,
        flat.dtype.base_dtype,
        use_bias,
        kernel_initializer or default_kernel_initializer(),
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
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
