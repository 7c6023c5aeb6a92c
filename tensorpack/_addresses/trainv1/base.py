"""`tensorpack.trainv1.base` of older versions; see `tensorpack.train`."""
