"""`tensorpack.dataflow.parallel` of older versions; see `tensorpack.dataflow`."""

from tensorpack.dataflow import (
    MultiProcessPrefetchData,
    MultiProcessRunner,
    MultiProcessRunnerZMQ,
    MultiThreadPrefetchData,
    MultiThreadRunner,
    PrefetchData,
    PrefetchDataZMQ,
)

__all__ = [
    "MultiProcessPrefetchData",
    "MultiProcessRunner",
    "MultiProcessRunnerZMQ",
    "MultiThreadPrefetchData",
    "MultiThreadRunner",
    "PrefetchData",
    "PrefetchDataZMQ",
]
