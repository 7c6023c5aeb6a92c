"""Tests of `tensorpack.dataflow._processes`."""
