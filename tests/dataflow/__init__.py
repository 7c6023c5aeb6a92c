"""Tests of `tensorpack.dataflow`; none of them needs TensorFlow."""
