"""Tests of `tensorpack.dataflow._remote`."""
