"""Trainers with one tower, those of 2017 included, and how later scripts start a trainer."""

from typing import Any, List, Optional, Union

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedfreeInput, FeedInput, InputSource, QueueInput
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.tower import TowerContext, TowerFunc
from tensorpack.utils.checks import check_kind

from .config import TrainConfig
from .tower import CostFn, OptFn, SingleCostTrainer, TowerTrainer


class SimpleTrainer(SingleCostTrainer):
    """One tower, one cost, on the first GPU of `TrainConfig.tower` (the CPU where there is none).

    A `dataflow` in the config is fed step by step, by a `FeedInput`; a `QueueInput` is faster.

    Args:
      config: what to train; None for `launch_train_with_config(config, trainer)`.
    """

    def _setup(self) -> None:
        if self.model is not None and self.config.nr_tower != 1:
            raise ValueError(
                f"{type(self).__name__} trains one tower, the config asks for {self.config.tower}."
            )
        super()._setup()

    def _input_of(self, dataflow: DataFlow) -> InputSource:
        return FeedInput(dataflow)

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        gpu = self.config.tower[0] if self.config else 0
        with TowerContext("", is_training=True), tf.device(tower_device(gpu)):
            grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)()
            self.train_op = get_opt_fn().apply_gradients(grads, name="train_op")
        return []


class QueueInputTrainer(SimpleTrainer):
    """A `SimpleTrainer` that reads `config.dataflow` through a `QueueInput`.

    Args:
      config: what to train, with a `dataflow`, or with a `QueueInput` as `data`, or a
        `StagingInput`, which makes a GPU wait less; None as in `SimpleTrainer`.
      input_queue: a `tf.QueueBase` to be used; defaults to that of `QueueInput`.
    """

    def __init__(self, config: Optional[TrainConfig] = None, input_queue: Any = None) -> None:
        super().__init__(config)
        self._input_queue = input_queue

    def _input_of(self, dataflow: DataFlow) -> InputSource:
        return QueueInput(dataflow, self._input_queue)


class NoOpTrainer(SimpleTrainer):
    """Builds the model, if there is one, and runs in a step only what the callbacks ask for."""

    def run_step(self) -> None:
        """Runs the hooks alone."""
        self.hooked_sess.run([])


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
        if self._tower_func is None:
            self.tower_func = TowerFunc(self.model.build_graph, self.model.get_input_signature())
        self.register_callback(self._set_up_input(self._input_source))

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


def apply_default_prefetch(
    input_source_or_dataflow: Union[InputSource, DataFlow],
    trainer: SingleCostTrainer,
    towers: Any = None,
) -> InputSource:
    """Returns the input that a trainer makes of a dataflow; an input is returned as it is.

    A `SimpleTrainer` is fed, the others read a queue; `towers` has no use.
    """
    if isinstance(input_source_or_dataflow, InputSource):
        return input_source_or_dataflow
    return (FeedInput if type(trainer) is SimpleTrainer else QueueInput)(input_source_or_dataflow)


def launch_train_with_config(config: TrainConfig, trainer: SingleCostTrainer) -> None:
    """Trains `config.model` on `config.dataflow` or `config.data` with `trainer`.

    Args:
      trainer: made without a config, such as `SimpleTrainer()`.
    """
    check_kind("config", config, TrainConfig)
    check_kind("trainer", trainer, SingleCostTrainer, " such as SimpleTrainer()")
    if trainer.config is not None:
        raise ValueError(
            "This trainer has a config already: call its train(), or make it without one."
        )
    if not isinstance(config.model, ModelDesc):
        raise ValueError("TrainConfig needs a model, a ModelDesc.")
    trainer.config, trainer.model = config, config.model
    trainer.train()
