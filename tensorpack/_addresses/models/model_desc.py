"""`tensorpack.models.model_desc` of older versions; see `tensorpack.graph_builder`."""

_home = "tensorpack.graph_builder.model_desc"
