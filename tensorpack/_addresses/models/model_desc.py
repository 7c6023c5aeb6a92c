"""`tensorpack.models.model_desc` of older versions; see `tensorpack.graph_builder`."""
