"""Tests of `tensorpack.RL`; none of them needs TensorFlow."""
