"""Trains the same model in several processes that add up their gradients in every step."""

import itertools
import math
import signal
import zlib
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder.allreduce import average_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.collectives import add_up_workers_by
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.train.base import StopTraining
from tensorpack.train.config import TrainConfig
from tensorpack.train.group.exchange import HAS_HALF, Exchange, broadcast_op
from tensorpack.train.group.server import worker_config
from tensorpack.train.tower import CostFn, OptFn
from tensorpack.utils import logger
from tensorpack.utils.checks import as_positive
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.stopping import Failed, Finished, Interrupted, StopReason, StopRequested

from .peers import PeerLost
from .table import FAILED, LEFT
from .trainer import GroupTrainer, StopVote
from .workers import INTERRUPTED, Workers

_KEYS_OF_A_RUN = 1000000
_runs = itertools.count()  # of this process, whose server keeps what earlier ones have left there


class CollectiveTrainer(GroupTrainer):
    """Several processes that train the same model, each on data of its own: in each step all add up
    their gradients, and do the same update. K workers do what one does with the K-fold batch.

    They use TensorFlow's own runtime. Start them with `python -m tensorpack.launch --workers K`, or
    in any other way that `Cluster.from_environment` knows. A process that was started alone trains
    alone. docs/distributed.md tells how the workers start, stop and fail together.

    Args:
      config: what to train; or the towers of this process, see `MultiTowerTrainer`.
      cluster: the workers; by default those of the environment.
      average: whether gradients are averaged over the workers; else they are added up. Those of
        several towers of a worker are averaged in any case.
      timeout: seconds without an answer after which a worker counts as lost; the others then end
        with a `PeerLost` that names it. A worker that is merely slow answers.
      compression: "fp16" to send float32 gradients as float16: half the bytes, but 11 bits of
        precision, and nothing above 65504. Not on TensorFlow 1.
      alone: whether there is no cluster, whatever the environment says.

    Attributes:
      is_chief: whether this is worker 0, which runs the callbacks of the chief.
    """

    def __init__(
        self,
        config: Union[TrainConfig, int, Sequence[int], None] = None,
        cluster: Optional[Cluster] = None,
        average: bool = True,
        timeout: float = 60.0,
        compression: Optional[str] = None,
        *,
        alone: bool = False,
    ) -> None:
        super().__init__(config)
        cluster = Cluster.from_environment() if cluster is None and not alone else cluster
        self.cluster = cluster
        if cluster is not None and (cluster.job != "worker" or cluster.ps):
            raise ValueError(
                f"{type(self).__name__} has workers only, but this is {cluster.name} of a cluster "
                f"with {len(cluster.ps)} parameter servers: start it with --ps 0."
            )
        if compression not in (None, "fp16"):
            raise ValueError(f"compression is None or 'fp16', got {compression!r}.")
        if compression and not HAS_HALF:
            raise RuntimeError("compression='fp16' needs TensorFlow 2: 1.15 cannot add up float16.")
        self._average = average
        self._wire = tf.float16 if compression else tf.float32
        self._timeout = as_positive(self, "timeout", timeout)
        self._exchange: Any = None  # an Exchange, when the graph is built
        self._group: Optional[Workers] = None
        self._announced = self._exchanges = False
        if cluster is not None and cluster.num_workers > 1:
            self.is_chief = cluster.is_chief
            self._form_group(cluster.index)
            self._group = Workers(cluster, self._timeout, self._on_lost, self._on_leave)
            self._first_key = next(_runs) * _KEYS_OF_A_RUN + 1
            self._keys = itertools.count(self._first_key + _KEYS_OF_A_RUN * 9 // 10)
            self._shared: List[tf.Variable] = []

    def _gather(self, values: Sequence[float]) -> np.ndarray:
        return self._group.gather(values, next(self._keys), self.check_stop)

    def _join(self) -> None:
        if self._group is not None and not self._group.target:
            self._group.join(self._require_config().session_config, self.check_stop)

    def _leave(self) -> None:
        self._group.close()

    def allreduce(self, grads: Sequence[Tuple[Any, tf.Variable]]) -> List[Tuple[Any, tf.Variable]]:
        """Returns the pairs with averages, or sums, over the workers; called once for a graph."""
        return list(grads) if self._group is None else self._exchange.reduce(grads)

    def broadcast(self, _: Any = None) -> None:
        """Gives all workers the variables of worker 0. All must call it after the same step."""
        if self._group is not None:
            self._group.run_apart(self.graph, self._broadcast, self.check_stop)

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        if self._group is not None:
            cluster = self._group.cluster
            workers, index = cluster.num_workers, cluster.index
            self._exchange = Exchange(workers, index, self._average, self._wire, self._first_key)
            add_up_workers_by(self._exchange.add_up)
        devices = self.variable_devices("cpu" if len(self.tower_ids) > 1 else "gpu")
        towers = self.build_towers(input, get_cost_fn, get_opt_fn, devices)
        grads = average_grads(towers) if len(towers) > 1 else towers[0]
        grads = self.allreduce(grads)
        of_model = tf.global_variables()
        with tf.device(devices[0]):
            update = get_opt_fn().apply_gradients(grads)
        if self._group is None:
            self.train_op = tf.group(update, name="train_op")
            return []
        exchange = self._exchange
        self.train_op = tf.group(update, exchange.send, name="train_op")
        get_global_step_var()
        trained = tf.trainable_variables()
        own = [each for each in of_model if not _is_in(each, trained)]
        self._shared = [each for each in tf.global_variables() if not _is_in(each, own)]
        self._digest = _digest(tf.global_variables())
        key = self._first_key + _KEYS_OF_A_RUN // 2
        # a run that is resumed has what differs between the workers, such as moving averages
        sent = [*self._shared, *([] if self.resumed else own)]
        self._broadcast = broadcast_op(sent, workers, index, key)
        logger.info(f"Each step exchanges {exchange.bytes:,} bytes of gradients and sums.")
        return [StopVote(exchange.flags, exchange.check_run)]

    def variables_to_save(self) -> List[tf.Variable]:
        """All in the chief; in others the step, and those that they do not share with it."""
        if self.is_chief or self._group is None:
            return super().variables_to_save()
        step = get_global_step_var()
        return [
            each for each in tf.global_variables() if each is step or not _is_in(each, self._shared)
        ]

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As the base class; then all workers get the variables of worker 0."""
        if self._group is None:
            super().initialize(session_creator, session_init)
            return
        creator = session_creator or NewSessionCreator()
        if not isinstance(creator, NewSessionCreator) or creator.target:
            raise ValueError(
                f"{type(self).__name__} makes a session on the server of its worker, so it takes a "
                "NewSessionCreator without a target, or TrainConfig(session_config=...)."
            )
        self._join()
        creator.target = self._group.target
        creator.config = worker_config(self._group.cluster, creator.config)
        super().initialize(creator, session_init)
        self._compare()
        self.broadcast()

    def _compare(self) -> None:
        """Raises ValueError if the workers do not do the same."""
        group, config = self._group, self._require_config()
        own = [self._digest, self._exchange.bytes, config.steps_per_epoch]
        table = self._gather(own)
        differs = (table != own).any(axis=1)
        if (table[:, :2] != own[:2]).any():
            raise ValueError(
                f"{group.who(*np.flatnonzero(differs))} builds other variables than "
                f"{group.cluster.name}: all must run the same program with the same options."
            )
        if differs.any():
            raise ValueError(
                f"The epochs of the workers have {table[:, 2].astype(int).tolist()} steps: give "
                "all the same, with TrainConfig(steps_per_epoch=...)."
            )

    def _loop(self) -> None:
        if self._group is None:
            super()._loop()
            return
        self._group.start(self.graph, self._exchange)
        self._exchanges = True
        flag, limit = FAILED, self._timeout
        try:
            super()._loop()
            flag, limit = LEFT, math.inf
        except BaseException as error:
            reason = self.stop_token.reason
            flag = _flag_of(error, reason)
            if flag == FAILED and not self._group.has_ended():
                cause = reason if isinstance(error, StopRequested) else error
                cause = reason.error if isinstance(reason, Failed) else cause
                logger.error(f"This worker leaves the group because of {cause!r}")
            if isinstance(error, tf.errors.OutOfRangeError) and self._group.flags is not None:
                raise StopRequested(self.stop_token.reason) from error  # others have left
            raise
        finally:
            self._group.leave(self.sess, flag, limit)
            self._group.close()

    def _end_step(self) -> None:
        super()._end_step()
        reason = self.signal_token.reason
        if reason is not None and self._group is not None and not self._announced:
            self._announced = True
            self._exchange.set_flag(self.sess, _flag_of(None, reason))

    def _agree(self, vote: np.ndarray) -> None:
        """See `GroupTrainer`; a vote has the flags of all workers."""
        self.stop_token.request(self._reason_of(vote))

    def _save_at_end(self) -> None:
        if self._group is not None and self.loop.in_step:
            raise RuntimeError("a worker left in the middle of a step")
        super()._save_at_end()

    def _on_lost(self, error: BaseException) -> None:
        super()._on_lost(error)
        self._after(self.stop_grace, self._end_process, error, self.global_step)

    def _end_process(self, error: BaseException, step: int) -> None:
        """The last resort, as where a layer adds something up over the workers in the step."""
        if self.loop.in_step and self.global_step == step and self._guard is not None:
            self._guard.end_process(str(error).rstrip("."), code=1)

    def _on_leave(self, flags: np.ndarray) -> None:
        """A worker has left, so that the running step has no sums."""
        if flags[self._group.cluster.index] >= 0:  # it has not left itself
            self.stop_token.request(self._reason_of(flags))
            self._life.unblock()

    def _reason_of(self, flags: np.ndarray) -> StopReason:
        codes = np.abs(flags)
        if (codes == FAILED).any():
            who = self._group.who(*np.flatnonzero(codes == FAILED))
            text = f"{who} has failed, so all workers end. Its own log tells why."
            return Failed(PeerLost(text), "another worker")
        who = self._group.who(*np.flatnonzero(codes))
        if codes.max() > INTERRUPTED:
            signum = int(codes.max()) - INTERRUPTED
            logger.info(f"{signal.Signals(signum).name} at {who} ends all workers.")
            return Interrupted(signum)
        logger.info(f"{who} has ended its training, so all workers do.")
        return Finished()

    def _can_agree(self) -> bool:
        return self._exchanges

    def _vote(self, reason: Interrupted) -> None:
        """Done at the end of the step, see `_end_step`: its flag is a variable of the session."""

    def _release(self) -> None:
        if self._exchanges:
            self._group.abandon(self.sess)


def _flag_of(error: Optional[BaseException], reason: Optional[StopReason]) -> int:
    """What the other workers hear when this one is to leave for a reason, or leaves by an error."""
    stopped = isinstance(error, (StopRequested, tf.errors.OpError, SystemExit))
    if isinstance(reason, Interrupted) and (error is None or stopped):
        return INTERRUPTED + reason.signum
    if error is None or isinstance(error, StopTraining):
        return LEFT
    exits = isinstance(error, SystemExit) and not error.code
    return LEFT if exits or (stopped and isinstance(reason, Finished)) else FAILED


def _is_in(variable: tf.Variable, variables: Sequence[tf.Variable]) -> bool:
    return any(variable is each for each in variables)


def _digest(variables: Sequence[tf.Variable]) -> int:
    """Returns a number that differs where names, shapes or types of variables do."""
    text = "\n".join(f"{each.op.name} {each.shape} {each.dtype.name}" for each in variables)
    return zlib.crc32(text.encode())
