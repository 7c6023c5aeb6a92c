"""`tensorpack.utils.utils` of older versions; see `tensorpack.utils`."""
