"""`tensorpack.train.model_desc` of older versions; see `tensorpack.graph_builder`."""

_home = "tensorpack.graph_builder"  # where its names are
