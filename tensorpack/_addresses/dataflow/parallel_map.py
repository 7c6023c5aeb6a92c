"""`tensorpack.dataflow.parallel_map` of older versions; see `tensorpack.dataflow`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.dataflow")
