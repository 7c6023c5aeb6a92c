"""Tests of `tensorpack.models`."""
