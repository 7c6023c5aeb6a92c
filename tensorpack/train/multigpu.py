"""Trainers of one cost on several towers of this process."""

from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import allreduce_grads
from tensorpack.graph_builder.allreduce import average_grads
from tensorpack.tfutils.gradproc import ScaleGradient
from tensorpack.tfutils.optimizer import ProxyOptimizer, apply_to_replicas
from tensorpack.tfutils.variables import replicas
from tensorpack.tfutils.varmanip import SessionUpdate
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords

from .config import TrainConfig
from .multi_tower import MultiTowerTrainer
from .tower import OptFn

Towers = Union[TrainConfig, int, Sequence[int], None]


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
            of_2017 = self._towers_given is None
            ps_device = "gpu" if of_2017 or len(self.tower_ids) <= 2 else "cpu"
        self.variable_devices(ps_device)
        self._ps_device = ps_device

    def _tower_devices(self) -> List[Any]:
        return self.variable_devices(self._ps_device)

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
    _var_strategy = "replicated"

    @accepts_old_keywords(gpus="config", use_nccl="mode")
    def __init__(
        self,
        config: Towers = None,
        *options: Any,
        gpu_prefetch: bool = True,
        average: bool = True,
        mode: Optional[str] = None,
    ) -> None:
        if isinstance(config, TrainConfig):
            (gpu_prefetch,) = _positional(options, gpu_prefetch)
        else:
            average, mode = _positional(options, average, mode)
        super().__init__(config, gpu_prefetch)
        self._average, self._mode = average, None if isinstance(mode, bool) else mode

    def _update_op(self, towers: Any, get_opt_fn: OptFn, devices: Any) -> tf.Operation:
        self.register_callback(_Sync(self.BROADCAST_EVERY_EPOCH))
        towers = replicas().align(towers)
        grads = [[gradient for gradient, _ in each] for each in towers]
        mode = self._mode or ("hierarchical" if len(towers) >= 8 else "gpu")
        reduced = allreduce_grads(grads, self._average, mode)
        pairs = [
            [(gradient, variable) for gradient, (_, variable) in zip(grads, tower)]
            for grads, tower in zip(reduced, towers)
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
        if not self._begun or not self._pairs:
            return {}
        found = zip(self._pairs, tf.get_default_session().run(self._pairs))
        differing = {
            copy.op.name: own for (copy, _), (own, main) in found if not np.array_equal(own, main)
        }
        return {"copies": differing} if differing else {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        known = {copy.op.name for copy, _ in self._pairs}
        values = state.get("copies", {})
        self._loaded = {name: each for name, each in values.items() if name in known}


class AsyncMultiGPUTrainer(MultiTowerTrainer):
    """Several towers that share their variables; each updates them as soon as its gradients are
    there, without the other towers'. A step is one such update of each tower.

    Results depend on the timing of threads.

    Args:
      config: what to train, or the towers, see `MultiTowerTrainer`.
      scale_gradient: whether gradients are divided by the number of towers.
    """

    @accepts_old_keywords(gpus="config")
    def __init__(self, config: Towers = None, scale_gradient: bool = True) -> None:
        super().__init__(config)
        self._scale_gradient = scale_gradient

    def _tower_devices(self) -> List[Any]:
        if self.config is not None and self.config.deterministic:
            raise ValueError(
                "AsyncMultiGPUTrainer cannot be deterministic: its results depend on which tower "
                "is ready first. Use a synchronous trainer, or leave deterministic out."
            )
        return self.variable_devices("gpu")

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


def _positional(given: Sequence[Any], *defaults: Any) -> List[Any]:
    """Returns the values of options: the first ones as given by position."""
    if len(given) > len(defaults):
        raise TypeError(f"There are {len(defaults)} options to be given by position, got {given}.")
    return [*given, *defaults[len(given) :]]
