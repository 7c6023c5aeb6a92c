"""`tensorpack.tfutils.modelutils` of older versions; see `tensorpack.tfutils.model_utils`."""

_home = "tensorpack.tfutils.model_utils"
