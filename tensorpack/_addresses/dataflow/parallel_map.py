"""`tensorpack.dataflow.parallel_map` of older versions; see `tensorpack.dataflow`."""

from tensorpack.dataflow import (
    MultiProcessMapAndBatchData,
    MultiProcessMapAndBatchDataZMQ,
    MultiProcessMapData,
    MultiProcessMapDataZMQ,
    MultiThreadMapData,
    ThreadedMapData,
)

__all__ = [
    "MultiProcessMapAndBatchData",
    "MultiProcessMapAndBatchDataZMQ",
    "MultiProcessMapData",
    "MultiProcessMapDataZMQ",
    "MultiThreadMapData",
    "ThreadedMapData",
]
