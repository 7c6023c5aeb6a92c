"""The address of the contract of input sources in scripts of 2017."""

from tensorpack.input_source import InputSource, remap_input_source

__all__ = ["InputSource", "remap_input_source"]
