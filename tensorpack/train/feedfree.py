"""The trainers of 2017 whose input is part of the graph, under their old address."""

from typing import Any

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedfreeInput
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.tower import TowerContext

from .config import TrainConfig
from .simple import SimpleTrainer
from .tower import TowerTrainer

__all__ = [
    "FeedfreeTrainerBase",
    "SimpleFeedfreeTrainer",
    "SingleCostFeedfreeTrainer",
]


class FeedfreeTrainerBase(TowerTrainer):
    """A base for trainers whose step runs `train_op` on an input that needs no feeding.

    A subclass overrides `_setup`: it calls the one here, builds the model inside of a
    `TowerContext`, and sets `train_op`, or overrides `run_step`::

        def _setup(self):
            super()._setup()
            with TowerContext("", is_training=True):
                self.model.build_graph(self._input_source)
            self.train_op = self.model.get_optimizer().minimize(self.model.cost)

    Args:
      config: with a model, and a `FeedfreeInput` as `data`; or the constructor of the subclass sets
        `self._input_source` to one.
    """

    _input_source: Any = None

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        if self._input_source is None:
            self._input_source = config.data
        if self._input_source is not None or config.dataflow is None:
            self._check_input()

    def _setup(self) -> None:
        self._check_input()
        self._setup_input_source(self._input_source)

    def _check_input(self) -> None:
        if not isinstance(self._input_source, FeedfreeInput):
            kind = type(self._input_source).__name__
            raise TypeError(
                f"{type(self).__name__} needs a FeedfreeInput, such as QueueInput(dataflow), as "
                f"TrainConfig.data or self._input_source, got {kind}."
            )

    def build_train_tower(self) -> Any:
        """Builds the model for training on the input; returns what its `build_graph` returns."""
        device = tower_device(self.config.tower[0])
        with self.computing.scope(), TowerContext("", is_training=True), tf.device(device):
            return self.tower_func(*self._input_source.get_input_tensors())


class SingleCostFeedfreeTrainer(SimpleTrainer, FeedfreeTrainerBase):
    """A `SimpleTrainer` that insists on a `FeedfreeInput`."""

    def _setup(self) -> None:
        self._check_input()
        super()._setup()


def SimpleFeedfreeTrainer(config: TrainConfig) -> SimpleTrainer:
    """Returns a `SimpleTrainer` for a `FeedfreeInput`."""
    return SingleCostFeedfreeTrainer(config)
