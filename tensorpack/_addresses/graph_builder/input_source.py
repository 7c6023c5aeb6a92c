"""`tensorpack.graph_builder.input_source` of older versions; see `tensorpack.input_source`."""

_home = "tensorpack.input_source"  # where its names are
