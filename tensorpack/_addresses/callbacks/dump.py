"""`tensorpack.callbacks.dump` of older versions; see `tensorpack.callbacks`."""
