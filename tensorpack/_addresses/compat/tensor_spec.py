"""`tensorpack.compat.tensor_spec` of older versions; see `tensorpack.compat`."""

from tensorpack.compat import TensorSpec

__all__ = ["TensorSpec"]
