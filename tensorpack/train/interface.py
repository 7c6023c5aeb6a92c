"""Trains a config with a trainer, as later scripts do."""

from typing import Any, Union

from tensorpack.dataflow import DataFlow
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput, InputSource, QueueInput

from .config import TrainConfig
from .simple import SimpleTrainer
from .tower import SingleCostTrainer

__all__ = ["apply_default_prefetch", "launch_train_with_config"]


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
    kind = FeedInput if type(trainer) is SimpleTrainer else QueueInput
    return kind(input_source_or_dataflow)


def launch_train_with_config(config: TrainConfig, trainer: SingleCostTrainer) -> None:
    """Trains `config.model` on `config.dataflow` or `config.data` with `trainer`.

    Args:
      config: has a model and data.
      trainer: made without a config, such as `SimpleTrainer()`.
    """
    if not isinstance(config, TrainConfig):
        raise TypeError(f"config must be a TrainConfig, got {type(config).__name__}.")
    if not isinstance(trainer, SingleCostTrainer):
        raise TypeError(
            "trainer must be a SingleCostTrainer such as SimpleTrainer(), got "
            f"{type(trainer).__name__}."
        )
    if trainer.config is not None:
        raise ValueError(
            "This trainer has a config already: call its train(), or make it without one."
        )
    if not isinstance(config.model, ModelDesc):
        raise ValueError("TrainConfig needs a model, a ModelDesc.")
    trainer.config, trainer.model = config, config.model
    trainer.train()
