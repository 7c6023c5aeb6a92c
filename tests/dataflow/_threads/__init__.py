"""Tests of `tensorpack.dataflow._threads`."""
