"""Tests of `tensorpack.dataflow._lmdb`."""
