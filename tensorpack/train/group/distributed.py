"""Trainers of several processes: workers, and parameter servers with the variables."""

from typing import Any, List, Optional, Sequence, Tuple

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import LeastLoadedDeviceSetter
from tensorpack.graph_builder.allreduce import allreduce_grads, average_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.gradproc import values_of
from tensorpack.tfutils.variables import VariablePairs, replicas
from tensorpack.train.tower import CostFn, OptFn

from .distributed_base import DistributedTrainerBase, Towers
from .server_graph import StepTurns, is_assigned, move_to_servers
from .table import vote_tensor
from .trainer import StopVote


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
    until all workers have ended, and ends by `SystemExit(0)`; after a signal, by
    `TrainingInterrupted`.

    Args:
      config: what to train, on `config.tower`; or, in the later spelling, towers as in
        `SyncMultiGPUTrainerReplicated`.
      server: of this process, in a cluster with the jobs "ps" and "worker"; by default the one that
        it was started in, see `Cluster.from_environment`.
      timeout: seconds without a sign of life after which a process of the cluster is lost, which
        ends the run with `PeerLost`. Ten times as many may pass until it starts.
    """

    vs_name_for_predictor = "tower0"

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        optimizer = get_opt_fn()  # here, so that its hyper-parameters belong to the worker
        get_global_step_var()
        before = {id(each) for each in tf.global_variables()}
        get_grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)
        scopes = [f"tower{i}" for i in range(len(self.tower_ids))]
        towers = replicas().align(
            self.build_on_multi_tower(self.tower_ids, get_grads, self.devices, "replicated", scopes)
        )
        made = [each for each in tf.global_variables() if id(each) not in before]
        made = [each for each in made if each.op.name.startswith(scopes[0] + "/")]
        setter = LeastLoadedDeviceSetter(self._cpu, self._servers)
        self._copies = copies = move_to_servers(made, scopes[0], setter)
        grads = average_grads(towers)
        trained = {id(local) for _, local in grads}  # which are those of the servers
        self._own = [p for p in copies if is_assigned(p[0]) and id(p[0]) not in trained]
        self._read_in_step = [pair for pair in copies if pair not in self._own]
        server_of = {id(local): copy for local, copy in copies}
        pairs = [(gradient, server_of[id(local)]) for gradient, local in grads]
        cluster = self.cluster
        self._turns = turns = StepTurns(
            self._host, cluster.index, cluster.num_workers, len(self.group.table)
        )
        with tf.control_dependencies([turns.wait()]), tf.device(setter):
            updated = optimizer.apply_gradients(pairs)
        signal = turns.end(turns.pass_on(updated))
        computed = [values_of(gradient) for gradient, _ in grads]
        with tf.control_dependencies([signal, *computed]):
            read = [
                op
                for local, copy in self._read_in_step
                for op in self._read(copy, [local, *replicas().copies_of(local)])
            ]
        self.train_op = tf.group(turns.finish(read), name="train_op")
        return [StopVote(signal)]

    def _read(self, source: tf.Variable, variables: Sequence[tf.Variable]) -> List[tf.Operation]:
        """Returns ops that set variables of this worker to one on a server, which is sent once."""
        with tf.device(self._cpu):
            value = tf.identity(source.read_value())
        ops = []
        for each in variables:
            with tf.device(each.device):
                ops.append(each.assign(value, read_value=False))
        return ops

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
        own = [] if self.is_chief else [local for local, _ in self._own]
        return super().variables_to_save() + own

    def prepare_save(self) -> None:
        """Gives the servers the values of what belongs to the chief, so that they are saved."""
        if self.is_chief and self._own:
            self.sess.run(self._save_own)


class DistributedTrainerParameterServer(DistributedTrainerBase):
    """Workers that share the variables on parameter servers, each at its own pace.

    In a step a worker reads the variables, computes the mean gradient of its towers, and updates
    the variables by it, whatever other workers do meanwhile. So results depend on timing. A step is
    one update by one worker, and each worker counts its own steps.

    Args:
      server: as in `DistributedReplicatedTrainer`, also for a process that is a parameter server.
      caching_device: where the values of the variables are kept for the time of a step: "cpu", that
        of the worker, or "gpu", the device of each tower.
    """

    _in_step = False

    def __init__(
        self,
        gpus: Towers,
        server: Optional[tf.train.Server] = None,
        caching_device: str = "cpu",
        timeout: float = 60.0,
    ) -> None:
        if caching_device not in ("cpu", "gpu"):
            raise ValueError(f"caching_device must be 'cpu' or 'gpu', got {caching_device!r}.")
        super().__init__(gpus, server, timeout)
        self._caching_device = caching_device

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        optimizer = get_opt_fn()
        get_global_step_var()
        devices = [LeastLoadedDeviceSetter(each, self._servers) for each in self.devices]
        cached_on = self._cpu if self._caching_device == "cpu" else self.devices[0]
        shared = tf.variable_scope(
            tf.get_variable_scope(), use_resource=True, caching_device=cached_on
        )
        with shared:
            towers = self.build_towers(input, get_cost_fn, get_opt_fn, devices)
        towers = replicas().align(towers)
        grads = allreduce_grads([[each for each, _ in pairs] for pairs in towers], True, "cpu")[0]
        pairs = [(gradient, variable) for gradient, (_, variable) in zip(grads, towers[0])]
        with tf.device(devices[0]):
            self.train_op = optimizer.apply_gradients(pairs, name="train_op")
        with tf.device(self._host):
            signal = vote_tensor(len(self.group.table))
        return [StopVote(signal)]


class DistributedTrainerReplicated(DistributedReplicatedTrainer):
    """`DistributedReplicatedTrainer` under its later name, with `gpus` for `config`."""


def _columns(pairs: Sequence[Tuple[Any, Any]]) -> Tuple[List[Any], List[Any]]:
    return [each for each, _ in pairs], [each for _, each in pairs]
