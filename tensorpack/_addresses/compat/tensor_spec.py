"""`tensorpack.compat.tensor_spec` of older versions; see `tensorpack.compat`."""
