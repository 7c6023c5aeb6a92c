"""Trainers of one cost on several towers of this process: their towers, devices and updates."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.compat import run_after
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import DataParallelBuilder, LeastLoadedDeviceSetter, allreduce_grads
from tensorpack.graph_builder.allreduce import average_grads
from tensorpack.input_source import (
    DataParallelFeedInput,
    FeedfreeInput,
    InputSource,
    QueueInput,
    StagingInput,
)
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.devices import as_towers, have_gpus
from tensorpack.tfutils.gradproc import ScaleGradient, values_of
from tensorpack.tfutils.optimizer import ProxyOptimizer, apply_to_replicas
from tensorpack.tfutils.variables import replicas
from tensorpack.tfutils.varmanip import SessionUpdate
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count, is_integer

from .config import TrainConfig
from .simple import FeedfreeTrainerBase
from .tower import CostFn, OptFn, SingleCostTrainer

Towers = Union[TrainConfig, int, Sequence[int], None]


class MultiTowerTrainer(SingleCostTrainer):
    """A base for trainers of one cost on several towers.

    A subclass overrides `_update_op`; or `_setup_graph`, where it calls `_compute_gradients`.

    Args:
      config: what to train, on the towers of `config.tower`; or, for
        `launch_train_with_config(config, trainer)`, the number of towers or the relative ids of
        their GPUs, None for the towers of that config.
      gpu_prefetch: whether a `QueueInput` copies batches to the GPUs ahead of their steps, by a
        `StagingInput`. It does not where there is no GPU, nor in a deterministic run.
    """

    _ps_device: Optional[str] = None  # where the variables are, see `tower_devices`
    _replicated = False  # whether the towers after the first have copies, see `_use_vs`
    _devices: Optional[List[Any]] = None

    def __init__(self, config: Towers = None, gpu_prefetch: bool = True) -> None:
        is_config = config is None or isinstance(config, TrainConfig)
        super().__init__(config if is_config else None)
        self._gpu_prefetch, self._tower_ids = gpu_prefetch, None
        if is_integer(config):
            self._tower_ids = list(range(as_count(self, "gpus", config)))
        elif not is_config:
            self._tower_ids = as_towers(self, "gpus", config)

    @property
    def tower_ids(self) -> List[int]:
        """The relative ids of the GPUs of the training towers."""
        if self._tower_ids is not None:
            return self._tower_ids
        return list(self.config.tower) if self.config else [0]

    @property
    def devices(self) -> List[Any]:
        """For each tower what `tf.device` takes, see `device_of`; may be set before the graph."""
        return self._devices or [self.device_of(gpu) for gpu in self.tower_ids]

    @devices.setter
    def devices(self, devices: Sequence[Any]) -> None:
        self._devices = list(devices)

    def tower_devices(self) -> List[Any]:
        """As `devices`, with the variables over all of them or on the CPU, if a class says so."""
        if self._ps_device is None:
            return self.devices
        names = [device for device in self.devices if isinstance(device, str)]  # of several devices
        names = names if names and self._ps_device == "gpu" else ["/device:CPU:0"]
        return [LeastLoadedDeviceSetter(device, names) for device in self.devices]

    def _setup(self) -> None:
        config = self.config
        if config.nr_tower > 1 and config.tower != self.tower_ids:
            raise ValueError(
                f"The config asks for the towers {config.tower}, and this "
                f"{type(self).__name__} was made for {self.tower_ids}: give them to one of them."
            )
        if config.data is None and config.dataflow is not None and self._tower_func is None:
            config.data = self._input_of(config.dataflow)
        prefetches = self._gpu_prefetch and len(self.tower_ids) > 1 and not config.deterministic
        if isinstance(config.data, QueueInput) and prefetches and have_gpus():
            if not config.data.setup_done():
                config.data = StagingInput(config.data)
        super()._setup()

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        devices = self.tower_devices()
        towers = self._compute_gradients(input, get_cost_fn, get_opt_fn, devices, self._use_vs())
        self.train_op = self._update_op(towers, get_opt_fn, devices)
        return []

    def _use_vs(self) -> List[bool]:
        """Returns for each tower whether it has copies of the variables of the first one."""
        return [self._replicated and index > 0 for index in range(len(self.tower_ids))]

    def _update_op(self, towers: Any, get_opt_fn: OptFn, devices: Any) -> tf.Operation:
        """Override to return the op that updates by each tower's (gradient, variable) pairs."""
        raise NotImplementedError(f"{type(self).__name__} must override _update_op().")

    def _compute_gradients(
        self,
        input: InputSource,
        get_cost_fn: CostFn,
        get_opt_fn: OptFn,
        devices: Sequence[Any],
        use_vs: Optional[Sequence[bool]] = None,
    ) -> List[List[Any]]:
        """Builds the towers, see `DataParallelBuilder`; returns for each its (gradient, variable)
        pairs.
        """
        kinds = (FeedfreeInput, DataParallelFeedInput)
        if len(self.tower_ids) > 1 and not isinstance(input, kinds):
            raise TypeError(
                f"{type(self).__name__} needs an input that has data for each of several towers, "
                "such as QueueInput(dataflow) or another FeedfreeInput, got "
                f"{type(input).__name__}."
            )
        get_grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)
        towers = DataParallelBuilder.call_for_each_tower(self.tower_ids, get_grads, devices, use_vs)
        if self.config is not None and self.config.deterministic:
            _update_averages_last(towers)
        return towers


class SyncMultiGPUTrainerParameterServer(MultiTowerTrainer):
    """Several towers that share their variables, which are updated once a step, by the mean of the
    towers' gradients. K towers do what one does with the K-fold batch.

    Args:
      config: what to train, or the towers, see `MultiTowerTrainer`.
      ps_device: where the variables are: "gpu", spread over the GPUs of the towers, or "cpu". By
        default "gpu" where `config` is a `TrainConfig` or there are at most two towers.
    """

    @accepts_old_keywords(gpus="config")
    def __init__(
        self, config: Towers = None, ps_device: Optional[str] = None, gpu_prefetch: bool = True
    ) -> None:
        super().__init__(config, gpu_prefetch)
        if ps_device is None:
            of_2017 = self._tower_ids is None
            ps_device = "gpu" if of_2017 or len(self.tower_ids) <= 2 else "cpu"
        if ps_device not in ("gpu", "cpu"):
            raise ValueError(f"ps_device must be 'gpu' or 'cpu', got {ps_device!r}.")
        self._ps_device = ps_device

    def _update_op(self, towers: Any, get_opt_fn: OptFn, devices: Any) -> tf.Operation:
        with tf.device(devices[0]):
            return get_opt_fn().apply_gradients(average_grads(towers), name="train_op")


@accepts_old_keywords(gpus="config")
def SyncMultiGPUTrainer(config: Towers = None) -> SyncMultiGPUTrainerParameterServer:
    """Returns a `SyncMultiGPUTrainerParameterServer` with its variables on the GPUs, as in 2017, if
    `config` is a `TrainConfig`, and on the CPU, as later, if it is the towers.
    """
    of_2017 = config is None or isinstance(config, TrainConfig)
    return SyncMultiGPUTrainerParameterServer(config, ps_device="gpu" if of_2017 else "cpu")


class SyncMultiGPUTrainerReplicated(MultiTowerTrainer):
    """Several towers with copies of the variables of the first one, which are all updated by the
    same gradients, the mean over the towers. K towers do what one does with the K-fold batch.

    The copies are local variables: checkpoints have the variables of the first tower, so those of
    any number of towers and of `SimpleTrainer` are exchangeable. Predictors use these variables,
    too. The copies are set to them before the training.

    Args:
      config: what to train, or the towers, see `MultiTowerTrainer`.
      options: with a `TrainConfig` the value of `gpu_prefetch`, as in 2017; with towers those of
        `average` and `mode`, as later.
      average: whether gradients are averaged; else they are added up.
      mode: how, see `allreduce_grads`; by default "gpu", from 8 towers on "hierarchical", also for
        True and False, which were `use_nccl` in 2018.

    Attributes:
      BROADCAST_EVERY_EPOCH: whether the copies are set to the main variables before each epoch,
        too; for what is not updated in each tower, such as moving averages of a layer.
    """

    BROADCAST_EVERY_EPOCH = True
    _replicated = True

    @accepts_old_keywords(gpus="config", use_nccl="mode")
    def __init__(
        self,
        config: Towers = None,
        *options: Any,
        gpu_prefetch: bool = True,
        average: bool = True,
        mode: Optional[str] = None,
    ) -> None:
        names = ["gpu_prefetch"] if isinstance(config, TrainConfig) else ["average", "mode"]
        if len(options) > len(names):
            raise TypeError(f"At most {len(names)} options ({', '.join(names)}), got {options}.")
        values: Dict[str, Any] = {"gpu_prefetch": gpu_prefetch, "average": average, "mode": mode}
        values.update(zip(names, options))
        super().__init__(config, values["gpu_prefetch"])
        self._average, self._mode = values["average"], values["mode"]

    def _update_op(self, towers: Any, get_opt_fn: OptFn, devices: Any) -> tf.Operation:
        self.register_callback(_Sync(self.BROADCAST_EVERY_EPOCH))
        towers = replicas().align(towers)
        mode = self._mode
        if mode is None or isinstance(mode, bool):
            mode = "hierarchical" if len(towers) >= 8 else "gpu"
        sums = allreduce_grads(
            [[grad for grad, _ in tower] for tower in towers], self._average, mode
        )
        pairs = [
            [(grad, var) for grad, (_, var) in zip(grads, tower)]
            for grads, tower in zip(sums, towers)
        ]
        with tf.device(devices[0]):
            return apply_to_replicas(get_opt_fn(), pairs, name="train_op")

    @staticmethod
    def get_post_init_ops() -> tf.Operation:
        """Returns an op that sets the copies to the variables of the first tower."""
        return replicas().sync_op()


class _Sync(Callback):
    """Sets the copies of variables to the main ones, which may have been loaded.

    Its state is what is not the same in all towers: averages of a layer over the tower's own data.
    """

    _chief_only = False
    follows = True  # it copies what a script's callbacks have set

    def __init__(self, every_epoch: bool) -> None:
        self._every_epoch = every_epoch
        self._loaded: Dict[str, Any] = {}
        self._begun = False

    def _setup_graph(self) -> None:
        with tf.name_scope(None):
            self._op = SyncMultiGPUTrainerReplicated.get_post_init_ops()
        self._pairs = replicas().untrained()

    def _before_train(self) -> None:
        logger.info(f"Running Op {self._op.name} ...")
        self._op.run()
        copies = [copy for copy, _ in self._pairs]
        SessionUpdate(tf.get_default_session(), copies).update(self._loaded)
        self._begun = True

    def _before_epoch(self) -> None:
        if self._every_epoch and self.local_step < 0:  # not in the middle of a resumed one
            self._op.run()

    def state_dict(self) -> Dict[str, Any]:
        if not self._begun:
            return {}
        values = tf.get_default_session().run(self._pairs)
        differing = {
            var.op.name: copy
            for (var, _), (copy, main) in zip(self._pairs, values)
            if not np.array_equal(copy, main)
        }
        return {"copies": differing} if differing else {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        names = {copy.op.name for copy, _ in self._pairs}
        copies = state.get("copies", {})
        self._loaded = {name: value for name, value in copies.items() if name in names}


class AsyncMultiGPUTrainer(MultiTowerTrainer):
    """Several towers that share their variables; each updates them as soon as its gradients are
    there, without the other towers'. A step is one such update of each tower.

    Results depend on the timing of threads.

    Args:
      config: what to train, or the towers, see `MultiTowerTrainer`.
      scale_gradient: whether gradients are divided by the number of towers.
    """

    _ps_device = "gpu"

    @accepts_old_keywords(gpus="config")
    def __init__(self, config: Towers = None, scale_gradient: bool = True) -> None:
        super().__init__(config)
        self._scale_gradient = scale_gradient

    def _setup(self) -> None:
        if self.config.deterministic:
            raise ValueError(
                "AsyncMultiGPUTrainer cannot be deterministic: its results depend on which tower "
                "is ready first. Use a synchronous trainer, or leave deterministic out."
            )
        super()._setup()

    def _update_op(self, towers: Any, get_opt_fn: OptFn, devices: Any) -> tf.Operation:
        factor = 1.0 / len(towers) if self._scale_gradient else 1.0
        optimizer = get_opt_fn()
        updates: List[tf.Operation] = []
        for device, grads in zip(devices, towers):
            scaled = ScaleGradient((".*", factor), verbose=False).process(grads)
            # What wraps an optimizer may read in one op and write in another.
            before = updates[-1:] if isinstance(optimizer, ProxyOptimizer) else []
            with tf.device(device), tf.control_dependencies(before):
                updates.append(optimizer.apply_gradients(scaled))
        return tf.group(*updates, name="train_op")


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
        """The spelling of 2017 of `DataParallelBuilder.call_for_each_tower`.

        Args:
          var_strategy: "shared": the towers have the variables of the first one. "replicated": the
            others have copies of them.
          vs_names: for "replicated", the variable scope of each tower; by default "" for the first
            one and `tower{i}` for the others.
        """
        replicated = var_strategy == "replicated"
        if not replicated and (var_strategy != "shared" or any(vs_names or [])):
            raise ValueError(
                "var_strategy must be 'shared', or 'replicated' with vs_names, got "
                f"{var_strategy!r} with vs_names={vs_names}."
            )
        if replicated and vs_names is None:
            vs_names = [f"tower{i}" if i else "" for i in range(len(towers))]
        return DataParallelBuilder.call_for_each_tower(towers, func, devices, vs_names)


def _update_averages_last(towers: Sequence[Sequence[Any]]) -> None:
    """Makes updates of averages wait for the gradients of all towers, which may read them."""
    grads = [values_of(grad).op for tower in towers for grad, _ in tower]
    used = set(ancestors(grads))
    computed = tf.group(*grads)
    for op in ancestors(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        if op not in used and op.type.startswith(("Assign", "ResourceScatter", "Scatter")):
            run_after(op, computed)
