"""`tensorpack.graph_builder.input_source` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source import (
    BatchQueueInput,
    DataParallelFeedInput,
    DummyConstantInput,
    EnqueueThread,
    FeedfreeInput,
    FeedInput,
    InputSource,
    PlaceholderInput,
    QueueInput,
    StagingInputWrapper,
    TensorInput,
    ZMQInput,
)

__all__ = [
    "BatchQueueInput",
    "DataParallelFeedInput",
    "DummyConstantInput",
    "EnqueueThread",
    "FeedInput",
    "FeedfreeInput",
    "InputSource",
    "PlaceholderInput",
    "QueueInput",
    "StagingInputWrapper",
    "TensorInput",
    "ZMQInput",
]
