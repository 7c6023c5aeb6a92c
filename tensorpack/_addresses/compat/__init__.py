"""Modules that `tensorpack.compat` had in older versions."""
