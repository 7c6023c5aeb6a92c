"""Predictors: from arrays to arrays, with the graph that trains or with one of their own."""

from .base import (
    AsyncPredictorBase,
    OfflinePredictor,
    OnlinePredictor,
    PredictorBase,
    get_predict_func,
)
from .concurrency import (
    MultiProcessPredictWorker,
    MultiProcessQueuePredictWorker,
    MultiThreadAsyncPredictor,
)
from .config import PredictConfig
from .dataset import DatasetPredictorBase, MultiProcessDatasetPredictor, SimpleDatasetPredictor
from .factory import PredictorFactory
from .feedfree import FeedfreePredictor
from .multigpu import DataParallelOfflinePredictor, MultiTowerOfflinePredictor

__all__ = [
    "AsyncPredictorBase",
    "DataParallelOfflinePredictor",
    "DatasetPredictorBase",
    "FeedfreePredictor",
    "MultiProcessDatasetPredictor",
    "MultiProcessPredictWorker",
    "MultiProcessQueuePredictWorker",
    "MultiThreadAsyncPredictor",
    "MultiTowerOfflinePredictor",
    "OfflinePredictor",
    "OnlinePredictor",
    "PredictConfig",
    "PredictorBase",
    "PredictorFactory",
    "SimpleDatasetPredictor",
    "get_predict_func",
]
