"""`tensorpack.utils.compatible_serialize` of older versions; see `tensorpack.utils.serialize`."""
