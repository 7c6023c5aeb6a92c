"""Modules that `tensorpack.graph_builder` had in older versions."""
