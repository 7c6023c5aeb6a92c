"""`tensorpack.train.trainers` of older versions; see `tensorpack.train`."""
