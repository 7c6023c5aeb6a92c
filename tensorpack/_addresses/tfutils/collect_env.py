"""`tensorpack.tfutils.collect_env` of older versions; see `tensorpack.tfutils.common`."""
