"""Where datapoints become tensors."""

from .base import FeedfreeInput, InputSource
from .check import DatapointChecker
from .cursor import DataFlowEmpty
from .enqueue import BatchQueueInput, QueueInput
from .enqueue_thread import EnqueueThread
from .feed import FeedInput, PlaceholderInput
from .staging import StagingInput
from .tensor import DummyConstantInput, TensorInput

__all__ = [
    "BatchQueueInput",
    "DataFlowEmpty",
    "DatapointChecker",
    "DummyConstantInput",
    "EnqueueThread",
    "FeedInput",
    "FeedfreeInput",
    "InputSource",
    "PlaceholderInput",
    "QueueInput",
    "StagingInput",
    "TensorInput",
]

__path__.append(f"{__path__[0]}/../_addresses/input_source")  # modules under their old names
