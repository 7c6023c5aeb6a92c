"""`tensorpack.dataflow.format` of older versions; see `tensorpack.dataflow`."""

from tensorpack.dataflow import (
    CaffeLMDB,
    HDF5Data,
    LMDBData,
    LMDBDataDecoder,
    LMDBDataPoint,
    SVMLightData,
    TFRecordData,
)

__all__ = [
    "CaffeLMDB",
    "HDF5Data",
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "SVMLightData",
    "TFRecordData",
]
