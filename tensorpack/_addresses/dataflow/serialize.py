"""`tensorpack.dataflow.serialize` of older versions; see `tensorpack.dataflow`."""

from tensorpack.dataflow import (
    HDF5Serializer,
    LMDBSerializer,
    NumpySerializer,
    TFRecordSerializer,
)

__all__ = [
    "HDF5Serializer",
    "LMDBSerializer",
    "NumpySerializer",
    "TFRecordSerializer",
]
