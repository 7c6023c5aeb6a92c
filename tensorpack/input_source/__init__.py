"""Where datapoints become tensors."""

from .base import FeedfreeInput, InputSource
from .check import DatapointChecker
from .cursor import DataFlowEmpty
from .enqueue import BatchQueueInput, QueueInput
from .enqueue_thread import EnqueueThread
from .feed import DataParallelFeedInput, FeedInput, PlaceholderInput
from .remap import remap_input_source
from .staging import StagingInput, StagingInputWrapper
from .tensor import DummyConstantInput, TensorInput
from .tf_dataset import TFDatasetInput
from .zmq import ZMQInput

__all__ = [
    "BatchQueueInput",
    "DataFlowEmpty",
    "DataParallelFeedInput",
    "DatapointChecker",
    "DummyConstantInput",
    "EnqueueThread",
    "FeedInput",
    "FeedfreeInput",
    "InputSource",
    "PlaceholderInput",
    "QueueInput",
    "StagingInput",
    "StagingInputWrapper",
    "TFDatasetInput",
    "TensorInput",
    "ZMQInput",
    "remap_input_source",
]

__path__.append(f"{__path__[0]}/../_addresses/input_source")  # modules under their old names
