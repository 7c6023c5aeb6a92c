"""Where the classes that save a flow to a file and load it again can be imported from."""

from .lmdb import LMDBSerializer

__all__ = ["LMDBSerializer"]
