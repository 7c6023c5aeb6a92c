"""Layers that put tensors together."""

from typing import Any

from tensorpack.compat import tfv1 as tf

from ._spelling import RENAMED
from .registry import layer_register

__all__ = ["ConcatWith"]


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["ConcatWith"])
def ConcatWith(inputs: tf.Tensor, tensor: Any, dim: int) -> tf.Tensor:
    """Concatenates `inputs` with other tensors; written for use in a `LinearWrap` chain.

    Args:
      inputs: comes first.
      tensor: one tensor, or a list of them, to follow in this order.
      dim: the axis along which they are joined.

    Returns:
      The tensor joined from all of them.
    """
    others = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
    return tf.concat([inputs, *others], dim)
