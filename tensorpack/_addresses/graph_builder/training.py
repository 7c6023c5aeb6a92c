"""`tensorpack.graph_builder.training` of older versions; see `tensorpack.train`."""

from typing import Any, Callable, Sequence

from tensorpack.graph_builder import DataParallelBuilder
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)

__all__ = [
    "AsyncMultiGPUBuilder",
    "DataParallelBuilder",
    "GraphBuilder",
    "SyncMultiGPUParameterServerBuilder",
    "SyncMultiGPUReplicatedBuilder",
]


class GraphBuilder:
    """Builds a graph by its method `build`, which derived classes define."""


class _TowersOf(DataParallelBuilder, GraphBuilder):
    """Builds the towers of a trainer, and what updates their variables. ::

    grads = builder.call_for_each_tower(get_grads)  # a tower's (gradient, variable) pairs
    train_op = builder.build(grads, get_optimizer)
    """

    _trainer_type: Any

    def __init__(self, towers: Sequence[int], *options: Any, **named: Any) -> None:
        self._trainer = self._trainer_type(towers, *options, **named)
        self._devices = self._trainer._tower_devices()
        super().__init__(self._trainer.tower_ids)

    def call_for_each_tower(self, tower_fn: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Returns what the function returns for each tower, see the base class."""
        trainer = self._trainer
        return trainer.build_on_multi_tower(
            self.towers, tower_fn, self._devices, trainer._var_strategy
        )

    def build(self, grad_list: Any, get_opt_fn: Callable[[], Any]) -> Any:
        """Returns the op of a training step. `grad_list` may be the function for a tower."""
        towers = self.call_for_each_tower(grad_list) if callable(grad_list) else grad_list
        return self._trainer._update_op(towers, get_opt_fn, self._devices)


class SyncMultiGPUParameterServerBuilder(_TowersOf):
    """The graph of a `SyncMultiGPUTrainerParameterServer(towers, ps_device)`."""

    _trainer_type = SyncMultiGPUTrainerParameterServer


class SyncMultiGPUReplicatedBuilder(_TowersOf):
    """The graph of a `SyncMultiGPUTrainerReplicated(towers, average, mode)`; `build` returns
    `(train_op, sync_op)`, of which the second sets the copies of the variables.
    """

    _trainer_type = SyncMultiGPUTrainerReplicated

    def build(self, grad_list: Any, get_opt_fn: Callable[[], Any]) -> Any:
        """Returns both ops; see the base class."""
        return super().build(grad_list, get_opt_fn), self._trainer.get_post_init_ops()


class AsyncMultiGPUBuilder(_TowersOf):
    """The graph of an `AsyncMultiGPUTrainer(towers, scale_gradient)`."""

    _trainer_type = AsyncMultiGPUTrainer
