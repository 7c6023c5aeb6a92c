"""`tensorpack.input_source.input_source_base` of older versions; see `tensorpack.input_source`."""
