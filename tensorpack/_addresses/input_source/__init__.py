"""Modules that `tensorpack.input_source` had in older versions."""
