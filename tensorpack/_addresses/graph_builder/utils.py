"""`tensorpack.graph_builder.utils` of older versions; see `tensorpack.graph_builder`."""

from tensorpack.graph_builder import LeastLoadedDeviceSetter, allreduce_grads

__all__ = ["LeastLoadedDeviceSetter", "allreduce_grads"]
