"""Trainers of several processes: workers, and parameter servers with the variables."""

import os
import signal
from typing import Any, List, Optional, Sequence, Tuple, Union

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import LeastLoadedDeviceSetter
from tensorpack.graph_builder.allreduce import allreduce_grads, average_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.gradproc import values_of
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.tfutils.variables import VariablePairs, replicas
from tensorpack.train.config import TrainConfig
from tensorpack.train.tower import CostFn, OptFn
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.cluster import Cluster

from .server import make_server, worker_config
from .server_graph import StepTurns, copies_on_server, is_assigned, is_on_server, move_to_servers
from .trainer import GroupTrainer, StopVote

Towers = Union[TrainConfig, int, Sequence[int], None]

_HOST = "/job:ps/task:0/device:CPU:0"


class DistributedTrainerBase(GroupTrainer):
    """What the trainers with parameter servers have in common: the session, and the group.

    Attributes:
      cluster: the `Cluster` that it was made for.
      worker_device: the part of the names of this worker's devices that they have in common.
    """

    @accepts_old_keywords(gpus="config")
    def __init__(
        self, config: Towers, server: Optional[tf.train.Server] = None, timeout: float = 1800.0
    ) -> None:
        self.server = server = _own_server(config) if server is None else server
        cluster = _cluster_of(server)
        if cluster.job == "ps":
            _serve(cluster, server)
        super().__init__(config)
        self._form_group(cluster, timeout)
        if self.config is not None:
            self._creator(self.config.session_creator)
        self._servers = [f"/job:ps/task:{i}/device:CPU:0" for i in range(len(cluster.ps))]
        self.worker_device = f"/job:worker/task:{cluster.index}"
        self._cpu = f"{self.worker_device}/device:CPU:0"

    def _join(self) -> None:
        if self._gathering is None:
            self._meet_at(self.server.target)

    def setup_graph(self, *args: Any, **kwargs: Any) -> None:
        """As in the base class, on the devices of this worker."""
        with self.graph.as_default(), tf.device(self.worker_device):
            super().setup_graph(*args, **kwargs)

    def setup_callbacks(
        self, callbacks: Sequence[Callback], monitors: Sequence[MonitorBase]
    ) -> None:
        """As in the base class, on the devices of this worker."""
        with self.graph.as_default(), tf.device(self.worker_device):
            super().setup_callbacks(callbacks, monitors)

    def variables_to_save(self) -> List[tf.Variable]:
        """All global variables in the chief; in others those that are not on a server."""
        variables = super().variables_to_save()
        return [var for var in variables if self.is_chief or not is_on_server(var)]

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As in the base class. The chief initialises what is on the parameter servers; the others
        wait until it has, and take the values that its own variables start with.
        """
        creator = self._creator(session_creator)
        self._join()
        with self.graph.as_default(), tf.device(self.worker_device):
            local = [var for var in tf.global_variables() if not is_on_server(var)]
            scope = f"tensorpack_start{self._first_key}/"
            start = copies_on_server(local, _HOST, lambda name: scope + name)
            give, take = VariablePairs(start, local), VariablePairs(local, start)
            start_op = (give if self.is_chief else take).copy_op("start_values")
            sync = self._sync_op()
            if not self.is_chief:
                self._meet()
                session_init = JustCurrentSession()  # the chief has loaded it
            with self._waiting("the parameter servers"):
                super().initialize(_WorkerSessionCreator(self, creator), session_init)
                if self.is_chief or not self.resumed:  # else it has loaded its own
                    self.sess.run(start_op)
        if self.is_chief:
            self._meet()
        with self._waiting("the parameter servers"):
            self.sess.run(sync)

    def _meet(self) -> None:
        """Waits for the other workers; override to compare what they do."""
        self._gather([0])

    def _sync_op(self) -> tf.Operation:
        """Override to return what each worker runs before its first step."""
        return tf.no_op()


class DistributedReplicatedTrainer(DistributedTrainerBase):
    """Workers that train copies of variables which parameter servers hold, all at the same pace.

    In a step each worker computes the mean gradient of its towers with its own copies. The workers
    then update the variables on the servers by their gradients, one after the other in the order of
    their numbers, and when all have, each sets its copies. Gradients are not averaged across
    workers: a step of N workers is N updates, by gradients at the same values. With plain gradient
    descent that is one update by the sum of the gradients; so N workers do what one does with the
    N-fold batch and the N-fold learning rate. With other optimizers it is not.

    The variables on the servers have the names that they have in any other trainer, and checkpoints
    are exchangeable. The copies are local variables, in the scope `tower0` (`tower1`, ...);
    predictors use those of `tower0`. What a layer updates without a gradient, such as the moments
    of `BatchNorm`, belongs to each worker; that of the chief is saved. Hyper-parameters belong to
    each worker, too.

    A process whose server is a parameter server does not return from the constructor: it serves
    until a signal ends it, which `python -m tensorpack.launch` sends when the workers have ended.

    Args:
      config: what to train, on `config.tower`; or, in the later spelling, towers as in
        `SyncMultiGPUTrainerReplicated`.
      server: of this process, in a cluster with the jobs "ps" and "worker"; by default the one that
        it was started in, see `Cluster.from_environment`.
      timeout: seconds that a worker waits for the others, in a step or at the start, before it ends
        its process.
    """

    vs_name_for_predictor = "tower0"

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        optimizer = get_opt_fn()  # here, so that its hyper-parameters belong to the worker
        get_global_step_var()
        before = {id(var) for var in tf.global_variables()}
        get_grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)
        scopes = [f"tower{i}" for i in range(len(self.tower_ids))]
        towers = replicas().align(
            self.build_on_multi_tower(self.tower_ids, get_grads, self.devices, "replicated", scopes)
        )
        new = [var for var in tf.global_variables() if id(var) not in before]
        new = [var for var in new if var.op.name.startswith(scopes[0] + "/")]
        setter = LeastLoadedDeviceSetter(self._cpu, self._servers)
        self._copies = copies = move_to_servers(new, scopes[0], setter)
        grads = average_grads(towers)
        trained = {id(local) for _, local in grads}  # which are those of the servers
        self._own = [p for p in copies if is_assigned(p[0]) and id(p[0]) not in trained]
        self._read_in_step = [pair for pair in copies if pair not in self._own]
        server_of = {id(local): copy for local, copy in copies}
        pairs = [(gradient, server_of[id(local)]) for gradient, local in grads]
        workers = self.cluster.num_workers
        self._turns = turns = StepTurns(_HOST, self._worker, workers, self._first_key)

        def update() -> tf.Operation:
            with tf.device(setter):
                return optimizer.apply_gradients(pairs)

        flags = turns.update(update, self._make_flag())
        computed = [values_of(gradient) for gradient, _ in grads]
        with tf.control_dependencies([flags, *computed]):
            read = [
                op
                for local, copy in self._read_in_step
                for op in self._read(copy, [local, *replicas().copies_of(local)])
            ]
        self.train_op = tf.group(turns.finish(read), name="train_op")
        return [StopVote(flags)]

    def _read(self, source: tf.Variable, variables: Sequence[tf.Variable]) -> List[tf.Operation]:
        """Returns ops that set variables of this worker to one on a server, which is sent once."""
        with tf.device(self._cpu):
            value = tf.identity(source.read_value())
        ops = []
        for var in variables:
            with tf.device(var.device):
                ops.append(var.assign(value, read_value=False))
        return ops

    def _meet(self) -> None:
        config = self._require_config()
        self._compare(steps_per_epoch=config.steps_per_epoch, max_epoch=config.max_epoch)

    def _sync_op(self) -> tf.Operation:
        has_own = self.resumed and not self.is_chief  # loaded from its own checkpoint
        pairs = self._read_in_step if has_own else list(self._copies)
        first = VariablePairs(*_columns(pairs)).copy_op("sync_variables_from_servers")
        with tf.control_dependencies([first]):
            synced = tf.group(first, replicas().sync_op())
        self._save_own = VariablePairs(*reversed(_columns(self._own))).copy_op("save_variables")
        return self._turns.finish([synced])

    def variables_to_save(self) -> List[tf.Variable]:
        """As in the base class; in other workers than the chief also the copies that are theirs."""
        averages = [] if self.is_chief else [local for local, _ in self._own]
        return super().variables_to_save() + averages

    def prepare_save(self) -> None:
        """Gives the servers the values of what belongs to the chief, so that they are saved."""
        if self.is_chief and self._own:
            self.sess.run(self._save_own)


class DistributedTrainerParameterServer(DistributedTrainerBase):
    """Workers that share the variables on parameter servers, each at its own pace.

    In a step a worker reads the variables, computes the mean gradient of its towers, and updates
    the variables by it, whatever other workers do meanwhile. So results depend on timing. A step is
    one update by one worker, and each worker counts its own steps, and ends for itself.

    Args:
      server: as in `DistributedReplicatedTrainer`, also for a process that is a parameter server.
      caching_device: where the values of the variables are kept for the time of a step: "cpu", that
        of the worker, or "gpu", the device of each tower.
    """

    def __init__(
        self,
        gpus: Towers,
        server: Optional[tf.train.Server] = None,
        caching_device: str = "cpu",
        timeout: float = 1800.0,
    ) -> None:
        if caching_device not in ("cpu", "gpu"):
            raise ValueError(f"caching_device must be 'cpu' or 'gpu', got {caching_device!r}.")
        super().__init__(gpus, server, timeout)
        self._caching_device = caching_device
        self.signal_token = self.stop_token

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        optimizer = get_opt_fn()
        get_global_step_var()
        devices = [LeastLoadedDeviceSetter(device, self._servers) for device in self.devices]
        cached_on = self._cpu if self._caching_device == "cpu" else self.devices[0]
        shared = tf.variable_scope(
            tf.get_variable_scope(), use_resource=True, caching_device=cached_on
        )
        with shared:
            towers = self.build_towers(input, get_cost_fn, get_opt_fn, devices)
        towers = replicas().align(towers)
        grads = allreduce_grads([[grad for grad, _ in pairs] for pairs in towers], True, "cpu")[0]
        pairs = [(gradient, variable) for gradient, (_, variable) in zip(grads, towers[0])]
        with tf.device(devices[0]):
            self.train_op = optimizer.apply_gradients(pairs, name="train_op")
        return []


class DistributedTrainerReplicated(DistributedReplicatedTrainer):
    """`DistributedReplicatedTrainer` under its later name, with `gpus` for `config`."""


class _WorkerSessionCreator(NewSessionCreator):
    """Makes the session of a worker on its server, and initialises what is this worker's."""

    def __init__(self, trainer: DistributedTrainerBase, creator: NewSessionCreator) -> None:
        config = worker_config(trainer.cluster, creator.config)
        super().__init__(trainer.server.target, config=config)
        self.computing, self._is_chief = creator.computing, trainer.is_chief

    def _own(self, variables: Sequence[tf.Variable]) -> List[tf.Variable]:
        return [var for var in variables if self._is_chief or not is_on_server(var)]


def _serve(cluster: Cluster, server: tf.train.Server) -> None:
    """Lets a parameter server work until a signal ends the process."""
    logger.info(f"{cluster.name} at {cluster.address} runs in process {os.getpid()}.")
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_DFL)  # Python hears of none while it waits
    server.join()


def _own_server(config: Towers) -> tf.train.Server:
    """The server of this process in the cluster that it was started in."""
    cluster = Cluster.from_environment()
    if cluster is None:
        raise ValueError(
            "This process was started alone: start a group by `python -m tensorpack.launch --ps 1 "
            "--workers 2 script.py`, or give the tf.train.Server of this process."
        )
    return make_server(cluster, config.session_config if isinstance(config, TrainConfig) else None)


def _cluster_of(server: tf.train.Server) -> Cluster:
    """The cluster that a server was made for, and its own task."""
    definition = server.server_def
    jobs = {
        job.name: tuple(address for _, address in sorted(job.tasks.items()))
        for job in definition.cluster.job
    }
    if not jobs.get("ps") or not jobs.get("worker") or set(jobs) != {"ps", "worker"}:
        raise ValueError(
            "A trainer with parameter servers needs a tf.train.Server of a cluster with the jobs "
            f"'ps' and 'worker', got {', '.join(sorted(jobs))}."
        )
    return Cluster(jobs["worker"], jobs["ps"], definition.job_name, definition.task_index)


def _columns(pairs: Sequence[Tuple[Any, Any]]) -> Tuple[List[Any], List[Any]]:
    return [target for target, _ in pairs], [source for _, source in pairs]
