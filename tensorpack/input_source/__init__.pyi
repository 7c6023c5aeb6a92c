"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .base import FeedfreeInput as FeedfreeInput
from .base import InputSource as InputSource
from .check import DatapointChecker as DatapointChecker
from .cursor import DataFlowEmpty as DataFlowEmpty
from .enqueue import BatchQueueInput as BatchQueueInput
from .enqueue import QueueInput as QueueInput
from .enqueue import ZMQInput as ZMQInput
from .enqueue_thread import EnqueueThread as EnqueueThread
from .feed import DataParallelFeedInput as DataParallelFeedInput
from .feed import FeedInput as FeedInput
from .feed import PlaceholderInput as PlaceholderInput
from .remap import remap_input_source as remap_input_source
from .staging import StagingInput as StagingInput
from .staging import StagingInputWrapper as StagingInputWrapper
from .tensor import DummyConstantInput as DummyConstantInput
from .tensor import TensorInput as TensorInput
from .tf_dataset import TFDatasetInput as TFDatasetInput

__all__: List[str]
