"""`tensorpack.graph_builder._utils` of older versions; see `tensorpack.input_source`."""
