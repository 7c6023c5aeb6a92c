"""`tensorpack.utils.utils` of older versions; see `tensorpack.utils`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.utils")
