"""`tensorpack.trainv1.multigpu` of older versions; see `tensorpack.train`."""
