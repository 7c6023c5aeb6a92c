"""Modules that `tensorpack.callbacks` had in older versions."""
