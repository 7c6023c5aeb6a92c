"""Tests of `tensorpack.utils`."""
