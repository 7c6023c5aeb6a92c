"""`tensorpack.train.trainer` of older versions; see `tensorpack.train.simple`."""
