"""`tensorpack.dataflow.common` of older versions; see `tensorpack.dataflow`."""

from tensorpack.dataflow import (
    BatchData,
    BatchDataByShape,
    CacheData,
    ConcatData,
    FixedSizeData,
    JoinData,
    LocallyShuffleData,
    MapData,
    MapDataComponent,
    PrintData,
    RandomChooseData,
    RandomMixData,
    RepeatedData,
    RepeatedDataPoint,
    SelectComponent,
    TestDataSpeed,
)

__all__ = [
    "BatchData",
    "BatchDataByShape",
    "CacheData",
    "ConcatData",
    "FixedSizeData",
    "JoinData",
    "LocallyShuffleData",
    "MapData",
    "MapDataComponent",
    "PrintData",
    "RandomChooseData",
    "RandomMixData",
    "RepeatedData",
    "RepeatedDataPoint",
    "SelectComponent",
    "TestDataSpeed",
]
