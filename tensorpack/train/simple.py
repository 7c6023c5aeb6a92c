"""Trainers with one tower."""

from typing import Any, Callable, List, Optional

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput, InputSource, QueueInput, StagingInput
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.loss_scale import LossScaleOptimizer
from tensorpack.tfutils.tower import TowerContext
from tensorpack.utils import logger

from .base import Trainer
from .config import TrainConfig
from .tower import SingleCostTrainer

__all__ = ["NoOpTrainer", "QueueInputTrainer", "SimpleTrainer"]


class SimpleTrainer(SingleCostTrainer):
    """One tower, one cost, on the first GPU of `TrainConfig.tower` (the CPU where there is none).

    A `dataflow` in the config is fed step by step, by a `FeedInput`; a `QueueInput` is faster.

    Args:
      config: what to train; None for `launch_train_with_config(config, trainer)`.
    """

    def __init__(self, config: Optional[TrainConfig] = None) -> None:
        super().__init__(config)
        self._wrap: Callable[[Any], InputSource] = FeedInput

    def _setup(self) -> None:
        if self._tower_func is not None:
            return  # setup_graph() was called by hand
        config, model = self.config, self.config.model
        if model is None:
            if type(self).run_step is not Trainer.run_step:
                return  # a subclass whose steps need no model
            raise ValueError(
                f"{type(self).__name__} has no model to train: give TrainConfig(model=...), or "
                "call setup_graph() before train()."
            )
        if not isinstance(model, ModelDesc):
            raise TypeError(
                f"{type(self).__name__} needs a ModelDesc, which has a cost, got "
                f"{type(model).__name__}."
            )
        if config.nr_tower != 1:
            raise ValueError(
                f"{type(self).__name__} trains one tower, the config asks for {config.tower}."
            )
        if config.data is None:
            if config.dataflow is None:
                raise ValueError("TrainConfig needs dataflow or data to train a model.")
            config.data = self._wrap(config.dataflow)
        signature = model.get_input_signature()
        self.setup_graph(signature, config.data, model.build_graph, model.get_optimizer)

    def _setup_graph(
        self, input: InputSource, get_opt_fn: Callable[[], tf.train.Optimizer]
    ) -> List[Callback]:
        gpu = self.config.tower[0] if self.config else 0
        with TowerContext("", is_training=True), tf.device(tower_device(gpu)):
            optimizer = get_opt_fn()
            if self.computing.precision == "fp16":
                optimizer = LossScaleOptimizer(optimizer)
            grads = self._gradients(input, optimizer)
            self.train_op = optimizer.apply_gradients(grads, name="train_op")
        _warn_about_unused_losses()
        return []


def QueueInputTrainer(
    config: Optional[TrainConfig] = None, input_queue: Any = None
) -> SimpleTrainer:
    """Returns a `SimpleTrainer` that reads `config.dataflow` through a `QueueInput`.

    Args:
      config: what to train, with a `dataflow`, or with a `QueueInput` as `data`, or a
        `StagingInput`, which makes a GPU wait less.
      input_queue: a `tf.QueueBase` to be used; defaults to that of `QueueInput`.

    Raises:
      TypeError: `config.data` is another kind of input source.
    """
    trainer = SimpleTrainer(config)
    data = None if config is None else config.data
    if data is not None and not isinstance(data, (QueueInput, StagingInput)):
        raise TypeError(
            "QueueInputTrainer reads a dataflow through a queue, but config.data is a "
            f"{type(data).__name__}: give TrainConfig(dataflow=...), or use SimpleTrainer."
        )
    trainer._wrap = lambda dataflow: QueueInput(dataflow, input_queue)
    return trainer


class NoOpTrainer(Trainer):
    """Runs nothing in a step but what the callbacks ask for."""

    def run_step(self) -> None:
        """Runs the hooks alone."""
        self.hooked_sess.run([])


def _warn_about_unused_losses() -> None:
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    if losses and not any(each.consumers() for each in losses):
        logger.warning(
            f"{len(losses)} tensors in REGULARIZATION_LOSSES are used by nothing: add them to the "
            "cost in build_graph()."
        )
