"""Tests of `tensorpack.RL.actors`; none of them needs TensorFlow."""
