"""The address of the input sources in scripts of 2017; they live in `tensorpack.input_source`."""

from tensorpack.input_source import (
    BatchQueueInput,
    DummyConstantInput,
    EnqueueThread,
    FeedfreeInput,
    FeedInput,
    InputSource,
    PlaceholderInput,
    QueueInput,
    TensorInput,
)

__all__ = [
    "BatchQueueInput",
    "DummyConstantInput",
    "EnqueueThread",
    "FeedInput",
    "FeedfreeInput",
    "InputSource",
    "PlaceholderInput",
    "QueueInput",
    "TensorInput",
]
