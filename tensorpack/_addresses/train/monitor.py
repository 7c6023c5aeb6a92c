"""`tensorpack.train.monitor` of older versions; see `tensorpack.callbacks`."""
