"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .base import StopTraining as StopTraining
from .base import Trainer as Trainer
from .config import AutoResumeTrainConfig as AutoResumeTrainConfig
from .config import DEFAULT_CALLBACKS as DEFAULT_CALLBACKS
from .config import DEFAULT_MONITORS as DEFAULT_MONITORS
from .config import TrainConfig as TrainConfig
from .ending import DataEnded as DataEnded
from .ending import TrainingInterrupted as TrainingInterrupted
from .group.collective import CollectiveTrainer as CollectiveTrainer
from .group.distributed import DistributedReplicatedTrainer as DistributedReplicatedTrainer
from .group.distributed import DistributedTrainerParameterServer as DistributedTrainerParameterServer
from .group.distributed import DistributedTrainerReplicated as DistributedTrainerReplicated
from .group.horovod import BytePSTrainer as BytePSTrainer
from .group.horovod import HorovodTrainer as HorovodTrainer
from .multigpu import AsyncMultiGPUTrainer as AsyncMultiGPUTrainer
from .multigpu import MultiGPUTrainerBase as MultiGPUTrainerBase
from .multigpu import SyncMultiGPUTrainer as SyncMultiGPUTrainer
from .multigpu import SyncMultiGPUTrainerParameterServer as SyncMultiGPUTrainerParameterServer
from .multigpu import SyncMultiGPUTrainerReplicated as SyncMultiGPUTrainerReplicated
from .resume import prepare_log_dir as prepare_log_dir
from .simple import FeedfreeTrainerBase as FeedfreeTrainerBase
from .simple import NoOpTrainer as NoOpTrainer
from .simple import QueueInputTrainer as QueueInputTrainer
from .simple import SimpleFeedfreeTrainer as SimpleFeedfreeTrainer
from .simple import SimpleTrainer as SimpleTrainer
from .simple import SingleCostFeedfreeTrainer as SingleCostFeedfreeTrainer
from .simple import apply_default_prefetch as apply_default_prefetch
from .simple import launch_train_with_config as launch_train_with_config
from .tower import SingleCostTrainer as SingleCostTrainer
from .tower import TowerTrainer as TowerTrainer
from tensorpack.graph_builder import LeastLoadedDeviceSetter as LeastLoadedDeviceSetter
from tensorpack.graph_builder import ModelDesc as ModelDesc
from tensorpack.graph_builder import ModelDescBase as ModelDescBase
from tensorpack.tfutils.queues import QueueClosed as QueueClosed

__all__: List[str]
