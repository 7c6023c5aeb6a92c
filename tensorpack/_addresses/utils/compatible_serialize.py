"""`tensorpack.utils.compatible_serialize` of older versions; see `tensorpack.utils.serialize`."""

from tensorpack.utils.serialize import dumps, loads

__all__ = ["dumps", "loads"]
