"""Runs: what to train and how long, the loop, and how it ends.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "base": "StopTraining Trainer",
    "config": "AutoResumeTrainConfig DEFAULT_CALLBACKS DEFAULT_MONITORS TrainConfig",
    "ending": "DataEnded TrainingInterrupted",
    "group.collective": "CollectiveTrainer",
    "group.distributed": (
        "DistributedReplicatedTrainer DistributedTrainerParameterServer "
        "DistributedTrainerReplicated"
    ),
    "group.horovod": "BytePSTrainer HorovodTrainer",
    "multigpu": (
        "AsyncMultiGPUTrainer MultiGPUTrainerBase SyncMultiGPUTrainer "
        "SyncMultiGPUTrainerParameterServer SyncMultiGPUTrainerReplicated"
    ),
    "resume": "prepare_log_dir",
    "simple": (
        "FeedfreeTrainerBase NoOpTrainer QueueInputTrainer SimpleFeedfreeTrainer SimpleTrainer "
        "SingleCostFeedfreeTrainer apply_default_prefetch launch_train_with_config"
    ),
    "tensorpack.graph_builder": "LeastLoadedDeviceSetter ModelDesc ModelDescBase",
    "tensorpack.tfutils.queues": "QueueClosed",
    "tower": "SingleCostTrainer TowerTrainer",
}
_HELPERS = {  # module -> names that other modules import from it, and that are not public
    "multigpu": "MultiTowerTrainer",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
