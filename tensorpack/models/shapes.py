"""Layers that combine tensors."""

from typing import Any

from tensorpack.compat import tfv1 as tf

from ._legacy_names import RENAMED
from .registry import layer_register

__all__ = ["ConcatWith"]


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["ConcatWith"])
def ConcatWith(inputs: tf.Tensor, tensor: Any, dim: int) -> tf.Tensor:
    """Concatenates `inputs` with other tensors; for use in a `LinearWrap` chain.

    Args:
      inputs: the first tensor.
      tensor: one tensor, or a list of tensors, appended in this order.
      dim: the axis to concatenate along.

    Returns:
      The concatenated tensor.
    """
    others = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
    return tf.concat([inputs, *others], dim)
