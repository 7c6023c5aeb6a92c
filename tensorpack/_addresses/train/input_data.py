"""`tensorpack.train.input_data` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source import InputSource as InputData  # noqa: F401  (its name in 0.2.0)

_home = "tensorpack.input_source"  # where its names are
