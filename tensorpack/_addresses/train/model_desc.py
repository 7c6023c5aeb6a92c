"""`tensorpack.train.model_desc` of older versions; see `tensorpack.graph_builder`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.graph_builder")
