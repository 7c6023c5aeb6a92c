"""`tensorpack.dataflow.serialize` of older versions; see `tensorpack.dataflow`."""
