"""`tensorpack.input_source.input_source` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source import (
    BatchQueueInput,
    DummyConstantInput,
    EnqueueThread,
    FeedfreeInput,
    FeedInput,
    PlaceholderInput,
    QueueInput,
    StagingInput,
    TensorInput,
    TFDatasetInput,
    ZMQInput,
)

__all__ = [
    "BatchQueueInput",
    "DummyConstantInput",
    "EnqueueThread",
    "FeedInput",
    "FeedfreeInput",
    "PlaceholderInput",
    "QueueInput",
    "StagingInput",
    "TFDatasetInput",
    "TensorInput",
    "ZMQInput",
]
