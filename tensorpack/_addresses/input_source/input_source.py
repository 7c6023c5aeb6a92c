"""`tensorpack.input_source.input_source` of older versions; see `tensorpack.input_source`."""
