"""Modules that `tensorpack.utils` had in older versions."""
