"""Trains the same model in several processes that add up their gradients in every step."""

import zlib
from typing import Any, List, Optional

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder.allreduce import average_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.collectives import add_up_workers_by
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.train.multigpu import Towers
from tensorpack.train.tower import CostFn, OptFn
from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster

from .exchange import HAS_HALF, Exchange, GradsAndVars
from .server import worker_config
from .trainer import GroupTrainer, StopVote


class CollectiveTrainer(GroupTrainer):
    """Several processes that train the same model, each on data of its own: in each step all add up
    their gradients, and do the same update. K workers do what one does with the K-fold batch.

    They use TensorFlow's own collectives. Start them with `python -m tensorpack.launch --workers
    K`, or in any other way that `Cluster.from_environment` knows. A process that was started alone
    trains alone. docs/distributed.md tells how the workers start, stop and fail together.

    Args:
      config: what to train; or the towers of this process, see `MultiTowerTrainer`.
      cluster: the workers; by default those of the environment.
      average: whether gradients are averaged over the workers; else they are added up. Those of
        several towers of a worker are averaged in any case.
      timeout: seconds that a worker waits for the others, in a step or at the start, before it ends
        its process. The others wait while the chief evaluates.
      compression: "fp16" to send float32 gradients as float16: half the bytes, but 11 bits of
        precision, and nothing above 65504. Not on TensorFlow 1.
      alone: whether there is no cluster, whatever the environment says.

    Attributes:
      is_chief: whether this is worker 0, which runs the callbacks of the chief.
    """

    _broadcast: Any = None  # an op, where there are other workers

    def __init__(
        self,
        config: Towers = None,
        cluster: Optional[Cluster] = None,
        average: bool = True,
        timeout: float = 1800.0,
        compression: Optional[str] = None,
        *,
        alone: bool = False,
    ) -> None:
        super().__init__(config)
        self.cluster = Cluster.from_environment() if cluster is None and not alone else cluster
        if self.cluster is not None and (self.cluster.job != "worker" or self.cluster.ps):
            raise ValueError(
                f"{type(self).__name__} has workers only, but this is {self.cluster.name} of a "
                f"cluster with {len(self.cluster.ps)} parameter servers: start it with --ps 0."
            )
        if compression not in (None, "fp16"):
            raise ValueError(f"compression is None or 'fp16', got {compression!r}.")
        if compression and not HAS_HALF:
            raise RuntimeError("compression='fp16' needs TensorFlow 2: 1.15 cannot add up float16.")
        self._average = average
        self._wire = tf.float16 if compression else tf.float32
        self._exchange: Any = None  # an Exchange, when the graph is built
        if self.cluster is not None and self.cluster.num_workers > 1:
            self._form_group(self.cluster, timeout)

    def allreduce(self, grads: GradsAndVars) -> GradsAndVars:
        """Returns the pairs with averages, or sums, over the workers; called once for a graph."""
        if not self._has_group:
            return grads
        return self._exchange.reduce(grads, self._make_flag())

    def broadcast(self, _: Any = None) -> None:
        """Gives all workers the variables of worker 0. All must call it after the same step."""
        if self._broadcast is not None:
            with self._waiting("the variables of worker 0"):
                self.sess.run(self._broadcast)

    def _setup_graph(
        self, input: InputSource, get_cost_fn: CostFn, get_opt_fn: OptFn
    ) -> List[Callback]:
        if self._has_group:
            workers = self.cluster.num_workers
            self._exchange = Exchange(workers, self._average, self._wire, self._first_key)
            add_up_workers_by(self._exchange.add_up)
        self._ps_device = "cpu" if len(self.tower_ids) > 1 else "gpu"
        devices = self.tower_devices()
        towers = self._compute_gradients(input, get_cost_fn, get_opt_fn, devices)
        grads = self.allreduce(average_grads(towers))
        trained = {id(var) for var in tf.trainable_variables()}
        of_worker = {id(var) for var in tf.global_variables()} - trained
        with tf.device(devices[0]):
            update = get_opt_fn().apply_gradients(grads)
        if not self._has_group:
            self.train_op = tf.group(update, name="train_op")
            return []
        exchange = self._exchange
        waits = [tensor.op for tensor in exchange.waits]  # also a sum that no update needs
        self.train_op = tf.group(update, exchange.flags.op, *waits, name="train_op")
        get_global_step_var()
        everything = tf.global_variables()
        self._shared = [var for var in everything if id(var) not in of_worker]
        # a run that is resumed has what differs between the workers, such as moving averages
        self._broadcast = exchange.broadcast_op(
            self._shared if self.resumed else everything, is_source=self.is_chief
        )
        text = "\n".join(f"{var.op.name} {var.shape} {var.dtype.name}" for var in everything)
        self._digest = zlib.crc32(text.encode())
        logger.info(f"Each step exchanges {exchange.bytes:,} bytes of gradients and sums.")
        return [StopVote(exchange.flags, exchange.waits)]

    def variables_to_save(self) -> List[tf.Variable]:
        """All in the chief; in others the step, and those that are not the same in all workers."""
        if self.is_chief or not self._has_group:
            return super().variables_to_save()
        shared = {id(var) for var in self._shared} - {id(get_global_step_var())}
        return [var for var in tf.global_variables() if id(var) not in shared]

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As the base class; then all workers get the variables of worker 0."""
        if not self._has_group:
            super().initialize(session_creator, session_init)
            return
        creator = self._check_creator(session_creator)
        creator.target = self._join()
        creator.config = worker_config(self.cluster, creator.config)
        super().initialize(creator, session_init)
        self._compare(variables=self._digest, gradients=self._exchange.bytes)
        self.broadcast()
