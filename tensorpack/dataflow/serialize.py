"""Where the classes that save a flow to a file and load it again can be imported from."""

from .hdf5 import HDF5Serializer
from .lmdb import LMDBSerializer
from .npz import NumpySerializer
from .tfrecord import TFRecordSerializer

__all__ = ["HDF5Serializer", "LMDBSerializer", "NumpySerializer", "TFRecordSerializer"]
