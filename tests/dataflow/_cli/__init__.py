"""Tests of the program `python -m tensorpack.dataflow`."""
