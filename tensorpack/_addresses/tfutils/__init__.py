"""Modules that `tensorpack.tfutils` had in older versions."""
