"""Modules that `tensorpack.train` had in older versions."""
