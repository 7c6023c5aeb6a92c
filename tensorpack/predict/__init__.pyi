"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .base import AsyncPredictorBase as AsyncPredictorBase
from .base import OfflinePredictor as OfflinePredictor
from .base import OnlinePredictor as OnlinePredictor
from .base import PredictorBase as PredictorBase
from .base import get_predict_func as get_predict_func
from .concurrency import MultiProcessPredictWorker as MultiProcessPredictWorker
from .concurrency import MultiProcessQueuePredictWorker as MultiProcessQueuePredictWorker
from .concurrency import MultiThreadAsyncPredictor as MultiThreadAsyncPredictor
from .config import PredictConfig as PredictConfig
from .dataset import DatasetPredictorBase as DatasetPredictorBase
from .dataset import MultiProcessDatasetPredictor as MultiProcessDatasetPredictor
from .dataset import SimpleDatasetPredictor as SimpleDatasetPredictor
from .export import ModelExport as ModelExport
from .export import ModelExporter as ModelExporter
from .factory import PredictorFactory as PredictorFactory
from .feedfree import FeedfreePredictor as FeedfreePredictor
from .multigpu import DataParallelOfflinePredictor as DataParallelOfflinePredictor
from .multigpu import MultiTowerOfflinePredictor as MultiTowerOfflinePredictor

__all__: List[str]
