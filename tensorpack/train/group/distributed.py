"""Trainers of several processes: workers, and parameter servers with the variables."""

import os
import signal
from typing import Any, Iterable, List, Optional, Sequence, Tuple

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import LeastLoadedDeviceSetter
from tensorpack.graph_builder.allreduce import allreduce_grads, average_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.common import get_global_step_var, root_variable
from tensorpack.tfutils.gradproc import values_of
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.tfutils.variables import VariablePairs, replicas
from tensorpack.train.config import TrainConfig
from tensorpack.train.multigpu import Towers
from tensorpack.train.tower import CostFn, OptFn
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.cluster import Cluster

from .trainer import GroupTrainer, StopVote, make_server, worker_config


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
        cluster = Cluster.from_environment() if server is None else _cluster_of(server)
        if cluster is None or not cluster.ps:
            raise ValueError(
                f"{type(self).__name__} needs parameter servers: start a group by `python -m "
                "tensorpack.launch --ps 1 --workers 2 script.py`, or give the tf.train.Server of a "
                "process in a cluster with the jobs 'ps' and 'worker'."
            )
        if server is None:
            options = config.session_config if isinstance(config, TrainConfig) else None
            server = make_server(cluster, options)
        if cluster.job == "ps":
            logger.info(f"{cluster.name} at {cluster.address} runs in process {os.getpid()}.")
            for signum in (signal.SIGINT, signal.SIGTERM):
                signal.signal(signum, signal.SIG_DFL)  # Python hears of none while it waits
            server.join()
        super().__init__(config)
        self._form_group(cluster, timeout)
        self.server = server
        if self.config is not None:
            self._check_creator(self.config.session_creator)
        self._servers = [f"/job:ps/task:{i}/device:CPU:0" for i in range(len(cluster.ps))]
        self.worker_device = f"/job:worker/task:{cluster.index}"
        self._cpu = f"{self.worker_device}/device:CPU:0"

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
        return [var for var in variables if self.is_chief or not _is_on_server(var)]

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As in the base class. The chief initialises what is on the parameter servers; the others
        wait until it has, and take the values that its own variables start with.
        """
        creator = self._check_creator(session_creator)
        self._join()
        with self.graph.as_default(), tf.device(self.worker_device):
            local = [var for var in tf.global_variables() if not _is_on_server(var)]
            names = [f"start{self._first_key}/{var.op.name}" for var in local]
            start = _copies_on_server(local, names, self._servers[0])
            pairs = (start, local) if self.is_chief else (local, start)
            start_op = VariablePairs(*pairs).copy_op("start_values")
            sync = self._sync_op()
            if not self.is_chief:
                self._meet()
                session_init = JustCurrentSession()  # the chief has loaded it
            with self._waiting("the parameter servers"):
                super().initialize(_WorkerSessionCreator(self, creator), session_init)
                if self.is_chief or not self.resumed:  # else it has loaded its own
                    self.sess.run(start_op)
                self.sess.run(sync)
        if self.is_chief:
            self._meet()

    def _meet(self) -> None:
        """Waits for the other workers; override to compare what they do."""
        self._gather([0])

    def _sync_op(self) -> tf.Operation:
        """Override to return what each worker runs before its first step."""
        return tf.no_op()


class DistributedReplicatedTrainer(DistributedTrainerBase):
    """Workers that train copies of variables which parameter servers hold, all at the same pace.

    In a step each worker computes the mean gradient of its towers with its own copies. The workers
    then update the variables on the servers, in the order of their numbers, and when all have, each
    sets its copies. So a step of N workers is N updates by gradients at the same values; with plain
    gradient descent that of one with the N-fold batch and the N-fold learning rate.

    Checkpoints are those of any other trainer. The copies are local variables in the scopes
    `tower0`, `tower1`, ...; predictors use those of `tower0`. What a layer updates without a
    gradient, such as the moments of `BatchNorm`, and hyper-parameters belong to each worker; those
    of the chief are saved.

    A process whose server is a parameter server does not return from the constructor: it serves
    until a signal ends it, which `python -m tensorpack.launch` sends when the workers have ended.

    Args:
      config: what to train, on `config.tower`; or, in the later spelling, towers as in
        `SyncMultiGPUTrainerReplicated`.
      server: of this process, in a cluster with the jobs "ps" and "worker"; by default the one that
        it was started in, see `Cluster.from_environment`.
      timeout: as in `CollectiveTrainer`.
    """

    vs_name_for_predictor = "tower0"

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        optimizer = get_opt_fn()  # here, so that its hyper-parameters belong to the worker
        get_global_step_var()
        use_vs = [True] * len(self.tower_ids)
        grads = average_grads(
            self._compute_gradients(input, get_cost_fn, get_opt_fn, self.devices, use_vs)
        )
        setter = LeastLoadedDeviceSetter(self._cpu, self._servers)
        self._copies = copies = _move_to_servers(tf.global_variables("tower0/"), "tower0/", setter)
        trained = {id(local) for _, local in grads}  # which are those of the servers
        self._averages = [p for p in copies if _is_assigned(p[0]) and id(p[0]) not in trained]
        self._read_in_step = [pair for pair in copies if pair not in self._averages]
        saves = [on_server.assign(local, read_value=False) for local, on_server in self._averages]
        self._save_averages = tf.group(*saves, name="save_variables")
        server_of = {id(local): on_server for local, on_server in copies}
        pairs = [(grad, server_of[id(local)]) for grad, local in grads]
        workers = self.cluster.num_workers
        self._turns = turns = _StepTurns(self._servers[0], self._worker, workers, self._first_key)
        before = turns.begin()
        with tf.device(setter), tf.control_dependencies([before]):
            update = optimizer.apply_gradients(pairs)
        flags = turns.end(before + self._make_flag(), update)
        with tf.control_dependencies([flags, *[values_of(grad) for grad, _ in grads]]):
            read = self._read(self._read_in_step)
        self.train_op = tf.group(turns.finish(read), name="train_op")
        return [StopVote(flags)]

    def _read(self, pairs: Iterable[Tuple[Any, Any]]) -> List[tf.Operation]:
        """Returns ops that set local variables to those on servers; each is sent once."""
        ops = []
        for local, on_server in pairs:
            with tf.device(self._cpu):
                value = tf.identity(on_server.read_value())
            for var in [local, *replicas().copies_of(local)]:
                with tf.device(var.device):
                    ops.append(var.assign(value, read_value=False))
        return ops

    def _meet(self) -> None:
        self._compare()

    def _sync_op(self) -> tf.Operation:
        has_averages = self.resumed and not self.is_chief  # loaded from its own checkpoint
        read = self._read(self._read_in_step if has_averages else self._copies)
        with tf.control_dependencies(read):
            return self._turns.finish([replicas().sync_op()])

    def variables_to_save(self) -> List[tf.Variable]:
        """As in the base class; in other workers than the chief also the copies that are theirs."""
        averages = [] if self.is_chief else [local for local, _ in self._averages]
        return super().variables_to_save() + averages

    def prepare_save(self) -> None:
        """Gives the servers the values of what belongs to the chief, so that they are saved."""
        if self.is_chief:
            self.sess.run(self._save_averages)


class DistributedTrainerParameterServer(DistributedTrainerBase):
    """Workers that share the variables on parameter servers, each at its own pace.

    A step is one update by the mean gradient of a worker's towers, whatever other workers do
    meanwhile, so results depend on timing. Each worker counts its own steps and ends for itself.

    Args:
      server: as in `DistributedReplicatedTrainer`, also for a process that is a parameter server.
      caching_device: what has the values of the variables during a step: "cpu", that of the worker,
        or "gpu", the first tower's device.
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
        cache = self._cpu if self._caching_device == "cpu" else self.devices[0]
        scope = tf.get_variable_scope()
        with tf.variable_scope(scope, use_resource=True, caching_device=cache):
            towers = self._compute_gradients(input, get_cost_fn, get_opt_fn, devices)
        towers = replicas().align(towers)
        grads = allreduce_grads([[grad for grad, _ in pairs] for pairs in towers], True, "cpu")[0]
        pairs = [(grad, var) for grad, (_, var) in zip(grads, towers[0])]
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

    def _select(self, variables: Sequence[tf.Variable]) -> List[tf.Variable]:
        return [var for var in variables if self._is_chief or not _is_on_server(var)]


def _cluster_of(server: tf.train.Server) -> Cluster:
    process = server.server_def
    jobs = tf.train.ClusterSpec(process.cluster).as_dict()
    addresses = jobs.get("worker", ()), jobs.get("ps", ())
    return Cluster(*addresses, process.job_name, process.task_index)


def _is_on_server(variable: tf.Variable) -> bool:
    """Whether a variable is on a parameter server."""
    return tf.DeviceSpec.from_string(variable.device).job == "ps"


def _copies_on_server(
    variables: Sequence[tf.Variable], names: Sequence[str], device: Any
) -> List[tf.Variable]:
    """Returns a new variable on a device for each, with the same initial value."""
    options = {"collections": [], "use_resource": True}
    with tf.device(device):
        return [
            root_variable(name, None, None, var.initial_value, **options)
            for var, name in zip(variables, names)
        ]


def _is_assigned(variable: tf.Variable) -> bool:
    """Whether an op of the graph sets a variable, apart from its initialiser."""
    users = [op for op in variable.op.outputs[0].consumers() if op is not variable.initializer]
    return any("Assign" in op.type or "Scatter" in op.type for op in users)


def _move_to_servers(variables: Sequence[tf.Variable], prefix: str, setter: Any) -> VariablePairs:
    """Makes copies of variables on parameter servers, without the prefix of their names. These take
    their places in all collections; the variables become local. Returns the pairs (variable, copy).
    """
    new = _copies_on_server(variables, [var.op.name[len(prefix) :] for var in variables], setter)
    copies = {id(var): copy for var, copy in zip(variables, new)}
    graph = tf.get_default_graph()
    for key in graph.get_all_collection_keys():
        members = graph.get_collection_ref(key)
        members[:] = [copies.get(id(var), var) for var in members]
    graph.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES).extend(variables)
    return VariablePairs(variables, new)


class _StepTurns:
    """Queues on a server, by which the workers update in the order of their numbers, and begin the
    next step when all have read the result. The sum of their flags, float32 `[workers]`, travels
    with the turn.

    Args:
      key: a number that is the same on all workers, and of this run only.
    """

    def __init__(self, device: str, index: int, number: int, key: int) -> None:
        self._device, self._index, self._number = device, index, number

        def make_queue(name: str) -> Any:
            return tf.FIFOQueue(number + 1, [tf.float32], [[number]], shared_name=name, name=name)

        with tf.device(device):
            self._turns = [make_queue(f"turn{key}_{i}") for i in range(number)]
            self._ends = [make_queue(f"end{key}_{i}") for i in range(number)]

    def begin(self) -> tf.Tensor:
        """Returns the flags of those who have updated in this step, when this worker may. The first
        one may when each has run `finish` once more: at the start, and after each step.
        """
        waits_for = 1 if self._index else self._number
        with tf.device(self._device):
            return tf.reduce_sum(self._turns[self._index].dequeue_many(waits_for), 0)

    def end(self, flags: tf.Tensor, updated: tf.Operation) -> tf.Tensor:
        """Returns the flags of all workers, when all have updated; `flags` are with this one's."""
        with tf.device(self._device), tf.control_dependencies([updated]):
            next_ones = self._turns[self._index + 1 :][:1] or self._ends
            passed = [queue.enqueue(flags) for queue in next_ones]
            with tf.control_dependencies(passed):
                return self._ends[self._index].dequeue()

    def finish(self, read: Sequence[tf.Operation]) -> tf.Operation:
        """Returns an op that tells, after `read`, that this worker has read the variables."""
        with tf.device(self._device), tf.control_dependencies(read):
            return self._turns[0].enqueue(tf.zeros([self._number]))
