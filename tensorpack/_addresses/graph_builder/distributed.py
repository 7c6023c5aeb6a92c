"""`tensorpack.graph_builder.distributed` of older versions; see `tensorpack.train.distributed`."""
