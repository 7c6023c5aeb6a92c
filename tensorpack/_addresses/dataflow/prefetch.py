"""`tensorpack.dataflow.prefetch` of older versions; see `tensorpack.dataflow`."""

from tensorpack.dataflow import (
    PrefetchData,
    PrefetchDataZMQ,
    PrefetchOnGPUs,
    ThreadedMapData,
)

__all__ = [
    "PrefetchData",
    "PrefetchDataZMQ",
    "PrefetchOnGPUs",
    "ThreadedMapData",
]
