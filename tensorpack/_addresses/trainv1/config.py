"""`tensorpack.trainv1.config` of older versions; see `tensorpack.train`."""
