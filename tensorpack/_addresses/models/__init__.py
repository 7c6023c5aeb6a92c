"""Modules that `tensorpack.models` had in older versions."""
