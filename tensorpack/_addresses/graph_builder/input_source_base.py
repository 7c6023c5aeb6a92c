"""`tensorpack.graph_builder.input_source_base` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source import (
    InputSource,
)

__all__ = [
    "InputSource",
]
