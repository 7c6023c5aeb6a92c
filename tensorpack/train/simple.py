"""Trainers with one tower."""

from typing import Any, List, Optional

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.input_source import FeedInput, InputSource, QueueInput, StagingInput
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.tower import TowerContext

from .config import TrainConfig
from .tower import CostFn, OptFn, SingleCostTrainer

__all__ = ["NoOpTrainer", "QueueInputTrainer", "SimpleTrainer"]


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
        if config is not None and config.data is not None:
            _check_has_queue(config.data)

    def _input_of(self, dataflow: DataFlow) -> InputSource:
        return QueueInput(dataflow, self._input_queue)

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        _check_has_queue(input)
        return super()._setup_graph(input, get_cost_fn, get_opt_fn)


class NoOpTrainer(SimpleTrainer):
    """Runs nothing in a step but what the callbacks ask for. The model, if there is one, is built
    as for training.
    """

    def run_step(self) -> None:
        """Runs the hooks alone."""
        self.hooked_sess.run([])


def _check_has_queue(data: InputSource) -> None:
    if not isinstance(data, (QueueInput, StagingInput)):
        raise TypeError(
            "QueueInputTrainer reads a dataflow through a queue, but its data is a "
            f"{type(data).__name__}: give TrainConfig(dataflow=...), or use SimpleTrainer."
        )
