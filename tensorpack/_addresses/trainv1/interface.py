"""`tensorpack.trainv1.interface` of older versions; see `tensorpack.train`."""
