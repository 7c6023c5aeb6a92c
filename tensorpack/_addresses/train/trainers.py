"""`tensorpack.train.trainers` of older versions; see `tensorpack.train`."""

from tensorpack.train import (
    AsyncMultiGPUTrainer,
    DistributedTrainerParameterServer,
    DistributedTrainerReplicated,
    NoOpTrainer,
    QueueInputTrainer,
    SimpleTrainer,
    SyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)

__all__ = [
    "AsyncMultiGPUTrainer",
    "DistributedTrainerParameterServer",
    "DistributedTrainerReplicated",
    "NoOpTrainer",
    "QueueInputTrainer",
    "SimpleTrainer",
    "SyncMultiGPUTrainer",
    "SyncMultiGPUTrainerParameterServer",
    "SyncMultiGPUTrainerReplicated",
]
