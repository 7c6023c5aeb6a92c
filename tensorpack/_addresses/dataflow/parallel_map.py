"""`tensorpack.dataflow.parallel_map` of older versions; see `tensorpack.dataflow`."""
