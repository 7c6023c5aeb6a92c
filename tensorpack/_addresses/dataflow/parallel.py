"""`tensorpack.dataflow.parallel` of older versions; see `tensorpack.dataflow`."""
