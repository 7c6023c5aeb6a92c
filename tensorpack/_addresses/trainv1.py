"""`tensorpack.trainv1` of older versions; see `tensorpack.train`."""

_home = "tensorpack.train"  # where its names are
