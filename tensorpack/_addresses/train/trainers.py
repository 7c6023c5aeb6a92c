"""`tensorpack.train.trainers` of older versions; see `tensorpack.train`."""

from tensorpack._addresses import moved_to

__getattr__, __all__ = moved_to("tensorpack.train")
