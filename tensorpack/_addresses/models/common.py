"""`tensorpack.models.common` of older versions; see `tensorpack.models`."""
