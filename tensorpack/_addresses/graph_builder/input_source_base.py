"""`tensorpack.graph_builder.input_source_base` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source import InputSource, remap_input_source

__all__ = ["InputSource", "remap_input_source"]
