"""`tensorpack.dataflow.prefetch` of older versions; see `tensorpack.dataflow`."""
