"""`tensorpack.dataflow.common` of older versions; see `tensorpack.dataflow`."""
