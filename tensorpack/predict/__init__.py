"""Predictors: from arrays to arrays, with the graph that trains or with one of their own; exports.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "AsyncPredictorBase OfflinePredictor OnlinePredictor PredictorBase get_predict_func",
    "concurrency": (
        "MultiProcessPredictWorker MultiProcessQueuePredictWorker MultiThreadAsyncPredictor"
    ),
    "config": "PredictConfig",
    "dataset": "DatasetPredictorBase MultiProcessDatasetPredictor SimpleDatasetPredictor",
    "export": "ModelExport ModelExporter",
    "factory": "PredictorFactory",
    "feedfree": "FeedfreePredictor",
    "multigpu": "DataParallelOfflinePredictor MultiTowerOfflinePredictor",
}
_HELPERS = {  # module -> names that other modules import from it, and that are not public
    "base": "check_count",
    "config": "tower_func_of",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
