"""`tensorpack.dataflow.format` of older versions; see `tensorpack.dataflow`."""
