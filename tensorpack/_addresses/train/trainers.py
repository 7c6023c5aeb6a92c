"""`tensorpack.train.trainers` of older versions; see `tensorpack.train`."""

from tensorpack.train import (
    AsyncMultiGPUTrainer,
    BytePSTrainer,
    DistributedTrainerParameterServer,
    DistributedTrainerReplicated,
    HorovodTrainer,
    NoOpTrainer,
    QueueInputTrainer,
    SimpleTrainer,
    SyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)

__all__ = [
    "AsyncMultiGPUTrainer",
    "BytePSTrainer",
    "DistributedTrainerParameterServer",
    "DistributedTrainerReplicated",
    "HorovodTrainer",
    "NoOpTrainer",
    "QueueInputTrainer",
    "SimpleTrainer",
    "SyncMultiGPUTrainer",
    "SyncMultiGPUTrainerParameterServer",
    "SyncMultiGPUTrainerReplicated",
]
