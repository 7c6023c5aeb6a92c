"""`tensorpack.tfutils.modelutils` of older versions; see `tensorpack.tfutils.model_utils`."""
