"""`tensorpack.trainv1.distributed` of older versions; see `tensorpack.train`."""
