"""The address, in 2017, of two functions that find inputs by name."""

from tensorpack.input_source.remap import get_sublist_by_names, get_tensors_inputs

__all__ = ["get_sublist_by_names", "get_tensors_inputs"]
