"""`tensorpack.train.interface` of older versions; see `tensorpack.train`."""

from tensorpack.train import (
    launch_train_with_config,
)

__all__ = [
    "launch_train_with_config",
]
