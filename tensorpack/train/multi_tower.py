"""What trainers with several towers have in common: their towers, devices and input."""

from typing import Any, Callable, List, Optional, Sequence, Union

from tensorpack.callbacks.base import Callback
from tensorpack.compat import run_after
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import LeastLoadedDeviceSetter
from tensorpack.graph_builder.data_parallel import build_towers
from tensorpack.input_source import (
    DataParallelFeedInput,
    FeedfreeInput,
    InputSource,
    QueueInput,
    StagingInput,
)
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.devices import as_towers, have_gpus
from tensorpack.tfutils.gradproc import values_of
from tensorpack.utils.checks import as_count, is_integer

from .config import TrainConfig
from .simple import FeedfreeTrainerBase
from .tower import CostFn, OptFn, SingleCostTrainer

_STRATEGIES = ("shared", "replicated")


class MultiGPUTrainerBase(FeedfreeTrainerBase):
    """A base for trainers of 2017 that build several towers by hand, as for several costs.

    Args:
      config: as in `FeedfreeTrainerBase`; its `tower` are the towers.
    """

    @staticmethod
    def build_on_multi_tower(
        towers: Sequence[int],
        func: Callable[[], Any],
        devices: Optional[Sequence[Any]] = None,
        var_strategy: str = "shared",
        vs_names: Optional[Sequence[str]] = None,
    ) -> List[Any]:
        """Calls a function in the context of each tower, see `DataParallelBuilder`.

        Args:
          devices: for each tower what `tf.device` takes; by default its GPU.
          var_strategy: "shared": the towers have the variables of the first one. "replicated": the
            others have copies of them.
          vs_names: for "replicated", the variable scope of each tower; by default "" for the first
            one and `tower{i}` for the others.

        Returns:
          what the function returns for each tower.
        """
        if var_strategy not in _STRATEGIES:
            raise ValueError(
                f"var_strategy must be one of {', '.join(_STRATEGIES)}, got {var_strategy!r}."
            )
        if var_strategy == "shared":
            if vs_names is not None and any(vs_names):
                raise ValueError(
                    f"Towers that share their variables have no scopes of their own: leave "
                    f"vs_names={vs_names} out, or use var_strategy='replicated'."
                )
        elif vs_names is None:
            vs_names = [f"tower{i}" if i else "" for i in range(len(towers))]
        return build_towers(towers, func, devices, vs_names)


class MultiTowerTrainer(SingleCostTrainer, MultiGPUTrainerBase):
    """A base for trainers of one cost on several towers.

    Args:
      config: what to train, on the towers of `config.tower`; or, for
        `launch_train_with_config(config, trainer)`, the number of towers or the relative ids of
        their GPUs, None for the towers of that config.
      gpu_prefetch: whether a `QueueInput` copies batches to the GPUs ahead of their steps, by a
        `StagingInput`. It does not where there is no GPU, nor in a deterministic run.
    """

    _var_strategy = "shared"  # of its towers, see `build_on_multi_tower`
    _devices: Optional[List[Any]] = None

    def __init__(
        self, config: Union[TrainConfig, int, Sequence[int], None] = None, gpu_prefetch: bool = True
    ) -> None:
        self._gpu_prefetch, self._towers_given = gpu_prefetch, None
        if is_integer(config):
            self._towers_given = list(range(as_count(self, "gpus", config)))
        elif config is not None and not isinstance(config, TrainConfig):
            self._towers_given = as_towers(self, "gpus", config)
        config = None if self._towers_given is not None else config
        super(FeedfreeTrainerBase, self).__init__(config)  # any input will do, and None

    @property
    def tower_ids(self) -> List[int]:
        """The relative ids of the GPUs of the training towers."""
        if self._towers_given is not None:
            return self._towers_given
        return list(self.config.tower) if self.config else [0]

    @property
    def devices(self) -> List[Any]:
        """For each tower what `tf.device` takes, see `device_of`; may be set before the graph."""
        return self._devices or [self.device_of(gpu) for gpu in self.tower_ids]

    @devices.setter
    def devices(self, devices: Sequence[Any]) -> None:
        self._devices = list(devices)

    def variable_devices(self, ps_device: str) -> List[Any]:
        """As `devices`, with the variables over all of them ("gpu"), or on the CPU ("cpu")."""
        if ps_device not in ("gpu", "cpu"):
            raise ValueError(f"ps_device must be 'gpu' or 'cpu', got {ps_device!r}.")
        named = [each for each in self.devices if isinstance(each, str)]  # where there are several
        names = named if named and ps_device == "gpu" else ["/device:CPU:0"]
        return [LeastLoadedDeviceSetter(each, names) for each in self.devices]

    def build_towers(
        self,
        input: InputSource,
        get_cost_fn: CostFn,
        get_opt_fn: OptFn,
        devices: Sequence[Any],
        var_strategy: str = "shared",
    ) -> List[List[Any]]:
        """Builds the towers; returns for each its (gradient, variable) pairs."""
        kinds = (FeedfreeInput, DataParallelFeedInput)
        if len(self.tower_ids) > 1 and not isinstance(input, kinds):
            raise TypeError(
                f"{type(self).__name__} needs an input that has data for each of several towers, "
                "such as QueueInput(dataflow) or another FeedfreeInput, got "
                f"{type(input).__name__}."
            )
        get_grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)
        towers = self.build_on_multi_tower(self.tower_ids, get_grads, devices, var_strategy)
        if self.config is not None and self.config.deterministic:
            _update_behind(towers)
        return towers

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        devices = self._tower_devices()
        grads = self.build_towers(input, get_cost_fn, get_opt_fn, devices, self._var_strategy)
        self.train_op = self._update_op(grads, get_opt_fn, devices)
        return []

    def _tower_devices(self) -> List[Any]:
        """Returns `devices`, or those with the variables where this trainer keeps them."""
        return self.devices

    def _update_op(self, towers: Any, get_opt_fn: OptFn, devices: Any) -> tf.Operation:
        """Override to return the op that updates by each tower's (gradient, variable) pairs."""
        raise NotImplementedError(f"{type(self).__name__} must override _update_op().")

    def _setup(self) -> None:
        config = self.config
        if config.nr_tower > 1 and config.tower != self.tower_ids:
            raise ValueError(
                f"The config asks for the towers {config.tower}, and this "
                f"{type(self).__name__} was made for {self.tower_ids}: give them to one of them."
            )
        if config.data is None and config.dataflow is not None and self._tower_func is None:
            config.data = self._input_of(config.dataflow)
        if isinstance(config.data, QueueInput) and self._stages():
            config.data = StagingInput(config.data)
        super()._setup()

    def _stages(self) -> bool:
        return (
            self._gpu_prefetch
            and len(self.tower_ids) > 1
            and not self.config.data.setup_done()
            and not self.config.deterministic
            and have_gpus()
        )


def _update_behind(towers: Sequence[Sequence[Any]]) -> None:
    """Makes updates of averages wait for the gradients of all towers, which may read them."""
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    pairs = [pair for tower in towers for pair in tower]
    gradients = [values_of(gradient).op for gradient, _ in pairs]
    needed = set(ancestors(gradients))
    computed = tf.group(*gradients)
    for op in ancestors(updates):
        if op not in needed and op.type.startswith(("Assign", "ResourceScatter", "Scatter")):
            run_after(op, computed)
