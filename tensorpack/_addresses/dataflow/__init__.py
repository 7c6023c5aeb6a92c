"""Modules that `tensorpack.dataflow` had in older versions."""
