"""`tensorpack.trainv1.simple` of older versions; see `tensorpack.train`."""
