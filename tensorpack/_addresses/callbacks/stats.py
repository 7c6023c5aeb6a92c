"""`tensorpack.callbacks.stats` of older versions; see `tensorpack.callbacks`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.callbacks")
