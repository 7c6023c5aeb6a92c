"""`tensorpack.graph_builder._utils` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source.remap import get_sublist_by_names, get_tensors_inputs

__all__ = ["get_sublist_by_names", "get_tensors_inputs"]
