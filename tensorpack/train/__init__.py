"""Runs: what to train and how long, the loop, and how it ends."""

from tensorpack.graph_builder import LeastLoadedDeviceSetter, ModelDesc, ModelDescBase
from tensorpack.tfutils.peers import PeerLost
from tensorpack.tfutils.queues import QueueClosed

from .base import StopTraining, Trainer
from .collective import CollectiveTrainer
from .config import DEFAULT_CALLBACKS, DEFAULT_MONITORS, AutoResumeTrainConfig, TrainConfig
from .distributed import (
    DistributedReplicatedTrainer,
    DistributedTrainerParameterServer,
    DistributedTrainerReplicated,
)
from .ending import DataEnded
from .feedfree import FeedfreeTrainerBase, SimpleFeedfreeTrainer, SingleCostFeedfreeTrainer
from .horovod import BytePSTrainer, HorovodTrainer
from .interface import apply_default_prefetch, launch_train_with_config
from .multi_tower import MultiGPUTrainerBase
from .multigpu import (
    AsyncMultiGPUTrainer,
    SyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)
from .resume import prepare_log_dir
from .signals import TrainingInterrupted
from .simple import NoOpTrainer, QueueInputTrainer, SimpleTrainer
from .tower import SingleCostTrainer, TowerTrainer

__all__ = [
    "AsyncMultiGPUTrainer",
    "AutoResumeTrainConfig",
    "BytePSTrainer",
    "CollectiveTrainer",
    "DEFAULT_CALLBACKS",
    "DEFAULT_MONITORS",
    "DataEnded",
    "DistributedReplicatedTrainer",
    "DistributedTrainerParameterServer",
    "DistributedTrainerReplicated",
    "FeedfreeTrainerBase",
    "HorovodTrainer",
    "LeastLoadedDeviceSetter",
    "ModelDesc",
    "ModelDescBase",
    "MultiGPUTrainerBase",
    "NoOpTrainer",
    "PeerLost",
    "QueueClosed",
    "QueueInputTrainer",
    "SimpleFeedfreeTrainer",
    "SimpleTrainer",
    "SingleCostFeedfreeTrainer",
    "SingleCostTrainer",
    "StopTraining",
    "SyncMultiGPUTrainer",
    "SyncMultiGPUTrainerParameterServer",
    "SyncMultiGPUTrainerReplicated",
    "TowerTrainer",
    "TrainConfig",
    "Trainer",
    "TrainingInterrupted",
    "apply_default_prefetch",
    "launch_train_with_config",
    "prepare_log_dir",
]

__path__.append(f"{__path__[0]}/../_addresses/train")  # modules under their old names
