"""`tensorpack.graph_builder.predictor_factory` of older versions; see `tensorpack.predict`."""
