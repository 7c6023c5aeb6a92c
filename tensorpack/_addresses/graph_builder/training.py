"""`tensorpack.graph_builder.training` of older versions; see `tensorpack.graph_builder`."""

from tensorpack.graph_builder import DataParallelBuilder

__all__ = ["DataParallelBuilder"]
