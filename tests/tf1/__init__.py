"""Tests of the program `python -m tensorpack.tf1`; `scripts` holds scripts for TensorFlow 1."""
