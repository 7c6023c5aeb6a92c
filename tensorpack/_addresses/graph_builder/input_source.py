"""`tensorpack.graph_builder.input_source` of older versions; see `tensorpack.input_source`."""

from tensorpack.input_source import (
    BatchQueueInput,
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
