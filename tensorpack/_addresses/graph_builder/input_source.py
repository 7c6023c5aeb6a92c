"""`tensorpack.graph_builder.input_source` of older versions; see `tensorpack.input_source`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.input_source")
