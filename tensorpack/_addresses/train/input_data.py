"""`tensorpack.train.input_data` of older versions; see `tensorpack.input_source`."""

_home = "tensorpack.input_source"  # where its names are
