"""`tensorpack.models.utils` of older versions; see `tensorpack.models`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.models")
