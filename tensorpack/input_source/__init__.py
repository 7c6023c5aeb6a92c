"""Where datapoints become tensors.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "FeedfreeInput InputSource",
    "check": "DatapointChecker",
    "cursor": "DataFlowEmpty",
    "enqueue": "BatchQueueInput QueueInput ZMQInput",
    "enqueue_thread": "EnqueueThread",
    "feed": "DataParallelFeedInput FeedInput PlaceholderInput",
    "remap": "remap_input_source",
    "staging": "StagingInput StagingInputWrapper",
    "tensor": "DummyConstantInput TensorInput",
    "tf_dataset": "TFDatasetInput",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
