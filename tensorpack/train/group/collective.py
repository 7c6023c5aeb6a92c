"""Trains the same model in several processes that add up their gradients in every step."""

import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

from tensorpack.callbacks.base import Callback
from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder.allreduce import average_grads
from tensorpack.input_source import InputSource
from tensorpack.tfutils.collectives import add_up_workers_by
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.train.multigpu import Towers
from tensorpack.train.tower import CostFn, OptFn
from tensorpack.utils import logger
from tensorpack.utils.cluster import Cluster

from .trainer import GroupTrainer, StopVote, worker_config

_BUCKET_BYTES = 4 << 20
_GROUP_KEY = 1
_CPU = "/device:CPU:0"
_FIRST_SUM, _FIRST_VARIABLE = 1000, 500000  # of the keys; those of gradients are before
HAS_HALF = tf_version() >= (2,)  # whether collectives can add up float16
_ON_THE_WIRE = (tf.float32, tf.float64, *[tf.float16] * HAS_HALF)
GradsAndVars = Sequence[Tuple[Any, tf.Variable]]


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
        if self._has_group:
            session_creator = self._check_creator(session_creator)
            session_creator.target = self._join()
            session_creator.config = worker_config(self.cluster, session_creator.config)
        super().initialize(session_creator, session_init)
        if self._has_group:
            self._compare(variables=self._digest, gradients=self._exchange.bytes)
        self.broadcast()


def all_reduce(tensor: tf.Tensor, size: int, key: int, average: bool = False) -> tf.Tensor:
    """Returns the sum, or the average, of a tensor over `size` workers, which has one shape, dtype
    and key on all of them.
    """
    return tf.raw_ops.CollectiveReduce(
        input=tensor,
        group_size=size,
        group_key=_GROUP_KEY,
        instance_key=key,
        merge_op="Add",
        final_op="Div" if average else "Id",
        subdiv_offsets=[0],
    )


class Exchange:
    """Adds up the gradients of a group of workers, and other tensors, and copies variables to all.

    Args:
      wire: dtype in which float32 gradients travel: float32, or float16 for half the bytes.
      first_key: of the collectives. Different for each exchange of a process, as its server lives
        on; the same on all workers.

    Attributes:
      flags: float32 `[size]`, the sums of the flags that travel with the gradients.
      waits: all tensors that wait for the other workers.
      bytes: how many bytes of gradients, and of other sums, a worker has in a step.
    """

    def __init__(
        self, size: int, average: bool = True, wire: tf.DType = tf.float32, first_key: int = 1
    ) -> None:
        self._size, self._average, self._wire, self._first_key = size, average, wire, first_key
        self._sums = 0
        self.waits: List[tf.Tensor] = []
        self.bytes = 0

    def reduce(self, grads: GradsAndVars, flags: tf.Tensor) -> List[Tuple[Any, tf.Variable]]:
        """Returns the (sum or average, variable) pairs of all workers' pairs. Called once.

        A gradient that is an `IndexedSlices` travels as a dense one, and comes back with the rows
        that any worker has.

        Args:
          flags: float32 `[size]`; small integers, so that they are exact in each type.
        """
        with tf.device(_CPU), tf.name_scope("Exchange"):
            parts = [_dense_parts(grad, variable) for grad, variable in grads]
            buckets = self._buckets([part for of_grad in parts for part in of_grad])
            totals: Dict[str, tf.Tensor] = {}
            for number, (wire, bucket) in enumerate(buckets):
                packed = bucket + [flags] * (number == len(buckets) - 1)
                flat = [tf.reshape(tf.cast(part, wire), [-1]) for part in packed]
                vector = tf.concat(flat, 0) if len(flat) > 1 else flat[0]
                total = self._all_reduce(vector, number, self._average)
                pieces = tf.split(total, [part.shape.num_elements() for part in flat])
                for part, piece in zip(packed, pieces):
                    totals[part.name] = tf.cast(tf.reshape(piece, part.shape), part.dtype)
            factor = self._size if self._average else 1
            self.flags = tf.round(factor * totals[flags.name], name="flags")
        pairs = []
        for (grad, variable), of_grad in zip(grads, parts):
            reduced = [totals[part.name] for part in of_grad]
            is_sparse = isinstance(grad, tf.IndexedSlices)
            pairs.append((_sparse(*reduced) if is_sparse else reduced[0], variable))
        return pairs

    def add_up(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the sum of a tensor of a known shape over the workers; for layers. Only a step
        may run it.
        """
        with tf.device(_CPU), tf.name_scope("Exchange/add_up"):
            self._sums += 1
            return self._all_reduce(tensor, _FIRST_SUM + self._sums, average=False)

    def broadcast_op(self, variables: Sequence[tf.Variable], is_source: bool) -> tf.Operation:
        """Returns an op that sets variables to their values in one worker. All must run it.

        Args:
          variables: the same on all workers, in this order. Those of an unknown shape, or of a type
            that cannot be sent, are left out, with a warning.
          is_source: whether this worker is that one.
        """
        ops, left_out = [], []
        with tf.name_scope("Broadcast"):
            for key, var in enumerate(variables, self._first_key + _FIRST_VARIABLE):
                dtype = var.dtype.base_dtype
                whole = dtype.is_integer or dtype.is_bool
                if not (whole or dtype.is_floating) or not var.shape.is_fully_defined():
                    left_out.append(var.op.name)
                    continue
                wire = tf.int64 if whole else tf.float64 if dtype == tf.float64 else tf.float32
                with tf.device(_CPU):
                    # -0.0 is what changes no other number, not even another -0.0
                    value = tf.cast(var, wire) if is_source else -tf.zeros(var.shape, wire)
                    total = tf.cast(all_reduce(value, self._size, key), dtype)
                ops.append(var.assign(total, read_value=False))
            if left_out:
                logger.warning(
                    "These variables may differ between the workers, because their shape or type "
                    f"cannot be sent: {', '.join(left_out)}."
                )
            return tf.group(*ops, name="broadcast")

    def _all_reduce(self, tensor: tf.Tensor, number: int, average: bool) -> tf.Tensor:
        self.waits.append(all_reduce(tensor, self._size, self._first_key + number, average))
        self.bytes += _bytes(tensor)
        return self.waits[-1]

    def _buckets(self, parts: Sequence[tf.Tensor]) -> List[Tuple[tf.DType, List[tf.Tensor]]]:
        """Packs tensors; the gradients of the last layers come first, as they are made."""
        by_wire: Dict[tf.DType, List[List[tf.Tensor]]] = {}
        for part in reversed(parts):
            dtype = part.dtype if part.dtype in _ON_THE_WIRE else tf.float32
            packs = by_wire.setdefault(self._wire if dtype == tf.float32 else dtype, [[]])
            if sum(map(_bytes, packs[-1])) >= _BUCKET_BYTES:
                packs.append([])
            packs[-1].append(part)
        return [(wire, bucket) for wire, packs in by_wire.items() for bucket in packs]


def _bytes(tensor: tf.Tensor) -> int:
    return tensor.shape.num_elements() * tensor.dtype.size


def _dense_parts(grad: Any, variable: tf.Variable) -> List[tf.Tensor]:
    """The gradient; of a sparse one, a dense one and how often each row is in it."""
    shape = variable.shape
    if not isinstance(grad, tf.IndexedSlices):
        return [tf.reshape(grad, shape)]
    rows, ones = shape.as_list()[0], tf.ones_like(grad.indices, grad.dtype)
    dense = tf.math.unsorted_segment_sum(grad.values, grad.indices, rows)
    counts = tf.math.unsorted_segment_sum(ones, grad.indices, rows)
    return [tf.reshape(dense, shape), tf.reshape(counts, [rows])]


def _sparse(dense: tf.Tensor, counts: tf.Tensor) -> tf.IndexedSlices:
    indices = tf.where(counts > 0)[:, 0]
    shape = tf.shape(dense, out_type=tf.int64)
    return tf.IndexedSlices(tf.gather(dense, indices), indices, shape)
