"""The trainers of 2017 whose input is part of the graph, under their old address."""

from typing import Any

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedfreeInput
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.tower import TowerContext, TowerFunc

from .config import TrainConfig
from .simple import QueueInputTrainer, SimpleTrainer
from .tower import TowerTrainer

__all__ = [
    "FeedfreeTrainerBase",
    "QueueInputTrainer",
    "SimpleFeedfreeTrainer",
    "SingleCostFeedfreeTrainer",
]


class FeedfreeTrainerBase(TowerTrainer):
    """A base for trainers whose step runs `train_op` on an input that needs no feeding.

    A subclass overrides `_setup`: it calls the one here, builds the model by `build_train_tower()`,
    and sets `train_op`.

    Args:
      config: with a model, and a `FeedfreeInput` as `data`.

    Raises:
      TypeError: `config.data` is something else.
    """

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        if not isinstance(config.data, FeedfreeInput):
            kind = type(config.data).__name__
            raise TypeError(
                f"{type(self).__name__} needs a FeedfreeInput as TrainConfig.data, got {kind}."
            )

    def _setup(self) -> None:
        model = self.config.model
        self.tower_func = TowerFunc(model.build_graph, model.get_input_signature())
        self.register_callback(self._set_up_input(self.config.data))

    def build_train_tower(self) -> Any:
        """Builds the model for training on the input; returns what its `build_graph` returns."""
        device = tower_device(self.config.tower[0])
        with self.computing.scope(), TowerContext("", is_training=True), tf.device(device):
            return self.tower_func(*self.config.data.get_input_tensors())


class SingleCostFeedfreeTrainer(SimpleTrainer, FeedfreeTrainerBase):
    """A `SimpleTrainer` that insists on a `FeedfreeInput`."""


def SimpleFeedfreeTrainer(config: TrainConfig) -> SimpleTrainer:
    """Returns a `SimpleTrainer` for a `FeedfreeInput`."""
    return SingleCostFeedfreeTrainer(config)
