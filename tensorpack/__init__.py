"""Trains TensorFlow graphs: the public names, and which package owns each.

Nothing is loaded before it is used: `import tensorpack` reads this table and nothing more, so
`tensorpack.dataflow` works where TensorFlow is not installed. `from tensorpack import *` gives
every public name and, with them, loads TensorFlow.

The two tables are written by `scripts/public_names` from the packages' own `__all__`.
"""

from importlib import import_module
from typing import Any, List

from tensorpack._version import __version__ as __version__

# Packages and modules that are reachable as attributes: name -> dotted path.
_MODULES = {
    # begin modules
    "argtools": "tensorpack.utils.argtools",
    "collection": "tensorpack.tfutils.collection",
    "compat": "tensorpack.compat",
    "concurrency": "tensorpack.utils.concurrency",
    "dataflow": "tensorpack.dataflow",
    "fs": "tensorpack.utils.fs",
    "gradproc": "tensorpack.tfutils.gradproc",
    "graph_builder": "tensorpack.graph_builder",
    "input_source": "tensorpack.input_source",
    "model_utils": "tensorpack.tfutils.model_utils",
    "models": "tensorpack.models",
    "predict": "tensorpack.predict",
    "serialize": "tensorpack.utils.serialize",
    "sesscreate": "tensorpack.tfutils.sesscreate",
    "sessinit": "tensorpack.tfutils.sessinit",
    "stats": "tensorpack.utils.stats",
    "summary": "tensorpack.tfutils.summary",
    "symbolic_functions": "tensorpack.tfutils.symbolic_functions",
    "tfutils": "tensorpack.tfutils",
    "timer": "tensorpack.utils.timer",
    "tower": "tensorpack.tfutils.tower",
    "train": "tensorpack.train",
    "utils": "tensorpack.utils",
    "varmanip": "tensorpack.tfutils.varmanip",
    "viz": "tensorpack.utils.viz",
    # end modules
}

# Public names: name -> the package or module that owns it.
_HOME = {
    # begin names
    "AvgPooling": "models",
    "BNReLU": "models",
    "BatchData": "dataflow",
    "BatchNorm": "models",
    "BatchQueueInput": "input_source",
    "ConcatWith": "models",
    "Conv2D": "models",
    "Conv2DTranspose": "models",
    "DEFAULT_CALLBACKS": "train",
    "DEFAULT_MONITORS": "train",
    "DataEnded": "train",
    "DataFlow": "dataflow",
    "DataFlowEmpty": "input_source",
    "DataFlowTerminated": "dataflow",
    "DataFromGenerator": "dataflow",
    "DataFromIterable": "dataflow",
    "DataFromList": "dataflow",
    "DataFromQueue": "dataflow",
    "DatapointChecker": "input_source",
    "Deconv2D": "models",
    "Dropout": "models",
    "DummyConstantInput": "input_source",
    "EnqueueThread": "input_source",
    "FakeData": "dataflow",
    "FeedInput": "input_source",
    "FeedfreeInput": "input_source",
    "FeedfreeTrainerBase": "train",
    "FixedSizeData": "dataflow",
    "FixedUnPooling": "models",
    "FullyConnected": "models",
    "GlobalAvgPooling": "models",
    "InputDesc": "graph_builder",
    "InputSource": "input_source",
    "InstanceNorm": "models",
    "LayerNorm": "models",
    "LeakyReLU": "models",
    "LinearWrap": "models",
    "MapData": "dataflow",
    "MapDataComponent": "dataflow",
    "MaxPooling": "models",
    "Maxout": "models",
    "ModelDesc": "graph_builder",
    "ModelDescBase": "graph_builder",
    "NoOpTrainer": "train",
    "OfflinePredictor": "predict",
    "OnlinePredictor": "predict",
    "PReLU": "models",
    "PerGraph": "tfutils",
    "PlaceholderInput": "input_source",
    "PredictConfig": "predict",
    "PredictorBase": "predict",
    "PrintData": "dataflow",
    "ProxyDataFlow": "dataflow",
    "QueueInput": "input_source",
    "QueueInputTrainer": "train",
    "RNGDataFlow": "dataflow",
    "RepeatedData": "dataflow",
    "RepeatedDataPoint": "dataflow",
    "SelectComponent": "dataflow",
    "SimpleFeedfreeTrainer": "train",
    "SimpleTrainer": "train",
    "SingleCostFeedfreeTrainer": "train",
    "SingleCostTrainer": "train",
    "StopTraining": "train",
    "TensorInput": "input_source",
    "TestDataSpeed": "dataflow",
    "TowerTrainer": "train",
    "TrainConfig": "train",
    "Trainer": "train",
    "TrainingInterrupted": "train",
    "UnknownLength": "dataflow",
    "VariableHolder": "models",
    "backup_collection": "tfutils",
    "change_env": "utils",
    "disable_layer_logging": "models",
    "execute_only_once": "utils",
    "fix_rng_seed": "utils",
    "freeze_collection": "tfutils",
    "get_default_sess_config": "tfutils",
    "get_global_step_value": "tfutils",
    "get_global_step_var": "tfutils",
    "get_op_or_tensor_by_name": "tfutils",
    "get_op_tensor_name": "tfutils",
    "get_registered_layer": "models",
    "get_rng": "utils",
    "get_tensors_by_names": "tfutils",
    "get_tf_version_tuple": "tfutils",
    "get_tqdm": "utils",
    "get_tqdm_kwargs": "utils",
    "graph_memoized": "tfutils",
    "humanize_time_delta": "utils",
    "l1_regularizer": "models",
    "l2_regularizer": "models",
    "launch_train_with_config": "train",
    "layer_register": "models",
    "logger": "utils",
    "regularize_cost": "models",
    "regularize_cost_from_collection": "models",
    "restore_collection": "tfutils",
    "tfv1": "compat",
    # end names
}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    """Loads the owner of a public name when the name is first used (PEP 562)."""
    if name in _MODULES:
        return _load(name, _MODULES[name])
    if name in _HOME:
        return getattr(_load(name, "tensorpack." + _HOME[name]), name)
    raise AttributeError(f"tensorpack has no public name {name!r}")


def __dir__() -> List[str]:
    return list(__all__)


def _load(name: str, path: str) -> Any:
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise ModuleNotFoundError(
            f"tensorpack.{name} needs TensorFlow, which is not installed. "
            "Install it with: pip install 'tensorpack[tf]'",
            name="tensorflow",
        ) from error
