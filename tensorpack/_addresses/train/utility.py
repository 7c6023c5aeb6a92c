"""`tensorpack.train.utility` of older versions; see `tensorpack.graph_builder.utils`."""
