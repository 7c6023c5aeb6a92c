"""What modules of `tensorpack.graph_builder` had in older versions."""

from contextlib import ExitStack
from typing import Any, Callable, ContextManager, List, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import DataParallelBuilder, LeastLoadedDeviceSetter, allreduce_grads
from tensorpack.graph_builder.allreduce import average_grads as mean_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.tower import TowerContext
from tensorpack.tfutils.varreplace import custom_getter_scope
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
)

__all__ = [
    "AsyncMultiGPUBuilder",
    "DataParallelBuilder",
    "GraphBuilder",
    "LeastLoadedDeviceSetter",
    "OverrideCachingDevice",
    "OverrideToLocalVariable",
    "SimplePredictBuilder",
    "SyncMultiGPUParameterServerBuilder",
    "SyncMultiGPUReplicatedBuilder",
    "aggregate_grads",
    "allreduce_grads",
    "average_grads",
    "override_to_local_variable",
]


class SimplePredictBuilder:
    """Builds one tower that predicts, in a name scope, a variable scope and on a device."""

    def __init__(self, ns_name: str = "", vs_name: str = "", device: Any = 0) -> None:
        self._ns_name, self._vs_name, self._device = ns_name, vs_name, device

    def build(self, input: InputSource, tower_fn: Callable[..., Any]) -> Any:
        """Returns what `tower_fn` returns for the tensors of an input, which is set up."""
        with tf.name_scope(None), tf.device(tower_device(self._device)):
            with TowerContext(self._ns_name, is_training=False, vs_name=self._vs_name):
                return tower_fn(*input.get_input_tensors())


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
        self._devices = self._trainer.tower_devices()
        super().__init__(self._trainer.tower_ids)

    def call_for_each_tower(self, tower_fn: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Returns what the function returns for each tower, see the base class."""
        use_vs = self._trainer._use_vs()
        return super().call_for_each_tower(self.towers, tower_fn, self._devices, use_vs)

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
        return super().build(grad_list, get_opt_fn), self._trainer.get_post_init_ops()


class AsyncMultiGPUBuilder(_TowersOf):
    """The graph of an `AsyncMultiGPUTrainer(towers, scale_gradient)`."""

    _trainer_type = AsyncMultiGPUTrainer


class OverrideCachingDevice:
    """Is a custom getter whose variables are cached on the one of `devices` that has the least so
    far; one below the threshold, in elements, on the device for small ones.
    """

    def __init__(
        self, devices: Any, device_for_small_variables: str, small_variable_size_threshold: int
    ) -> None:
        self._sizes = dict.fromkeys(devices, 0)
        self._small, self._threshold = device_for_small_variables, small_variable_size_threshold

    def __call__(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        size = tf.TensorShape(kwargs["shape"]).num_elements()
        if size is None or not kwargs.get("trainable", True):
            return getter(*args, **kwargs)
        device = self._small
        if size >= self._threshold:
            device = min(self._sizes, key=self._sizes.__getitem__)
            self._sizes[device] += size
        return getter(*args, **{**kwargs, "caching_device": device})


def OverrideToLocalVariable(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Is a custom getter whose new variables are local ones instead of global ones."""
    keys = kwargs.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
    local = {tf.GraphKeys.GLOBAL_VARIABLES: tf.GraphKeys.LOCAL_VARIABLES}
    return getter(*args, **{**kwargs, "collections": [local.get(key, key) for key in keys]})


def override_to_local_variable(enable: bool = True) -> ContextManager:
    """Returns a context in which `tf.get_variable` makes local variables, if `enable`."""
    return custom_getter_scope(OverrideToLocalVariable) if enable else ExitStack()


def aggregate_grads(
    all_grads: Any, colocation: bool = False, devices: Any = None, average: bool = True
) -> List[Tuple[Any, Any]]:
    """Returns the mean, or the sum, of the gradients that towers have of each variable.

    Args:
      all_grads: for each tower its (gradient, variable); the variables are the same.
      colocation, devices: have no use: a mean is on the device of its variable.
    """
    return mean_grads(all_grads, average)


average_grads = aggregate_grads  # its name of 0.7
