"""`tensorpack.train.trainers` of older versions; see `tensorpack.train`."""

from tensorpack.train import (
    NoOpTrainer,
    QueueInputTrainer,
    SimpleTrainer,
)

__all__ = [
    "NoOpTrainer",
    "QueueInputTrainer",
    "SimpleTrainer",
]
