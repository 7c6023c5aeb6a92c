"""`tensorpack.models.utils` of older versions; see `tensorpack.models`."""
