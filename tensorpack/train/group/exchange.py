"""The ops by which workers add up their gradients in each step, and start with the same variables.

They are TensorFlow's collectives, and run inside the step. One waits until all workers run it.
"""

from typing import Any, Dict, List, Sequence, Tuple

from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

_BUCKET_BYTES = 4 << 20
_GROUP_KEY = 1
_CPU = "/device:CPU:0"
_FIRST_SUM = 1000  # the keys of sums are after those of gradients
HAS_HALF = tf_version() >= (2,)  # whether collectives can add up float16
_ON_THE_WIRE = (tf.float32, tf.float64, *[tf.float16] * HAS_HALF)
GradsAndVars = Sequence[Tuple[Any, tf.Variable]]


def all_reduce(tensor: tf.Tensor, size: int, key: int, average: bool = False) -> tf.Tensor:
    """Returns the sum, or the average, of a tensor over `size` workers.

    Args:
      tensor: of one shape and dtype on all workers.
      key: which collective of the graph it is, the same on all workers.
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


def broadcast_op(
    variables: Sequence[tf.Variable], size: int, index: int, first_key: int
) -> tf.Operation:
    """Returns an op that sets variables to their values in worker 0. All workers must run it.

    Args:
      variables: the same on all workers, in this order. Those whose shape is not known, or of a
        type that cannot be sent, such as strings, are left out, with a warning.
      first_key: see `all_reduce`; the variables use as many as there are, from this on.
    """
    ops, left_out = [], []
    with tf.name_scope("Broadcast"):
        for key, variable in enumerate(variables, first_key):
            dtype, shape = variable.dtype.base_dtype, variable.shape
            sent = tf.int64 if dtype.is_integer or dtype.is_bool else tf.float32
            sent = tf.float64 if dtype == tf.float64 else sent
            if not (sent == tf.int64 or dtype.is_floating) or not shape.is_fully_defined():
                left_out.append(variable.op.name)
                continue
            options = {"group_size": size, "group_key": _GROUP_KEY, "instance_key": key}
            with tf.device(_CPU):
                if index == 0:
                    value = tf.cast(variable.read_value(), sent)
                    send = tf.raw_ops.CollectiveBcastSend(input=value, shape=shape, **options)
                    ops.append(send.op)
                    continue
                received = tf.raw_ops.CollectiveBcastRecv(T=sent, shape=shape, **options)
                value = tf.cast(received, dtype)
            ops.append(variable.assign(value, read_value=False))
        if left_out:
            logger.warning(
                f"These variables may differ between the workers, because their shape or type "
                f"cannot be sent: {', '.join(left_out)}."
            )
        return tf.group(*ops, name="broadcast")


class Exchange:
    """Adds up gradients over a group of workers, and other tensors within the step.

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
        if not grads:
            raise ValueError("There is no gradient to exchange: no variable is trained.")
        with tf.device(_CPU), tf.name_scope("Exchange"):
            parts = [_dense_parts(grad, variable) for grad, variable in grads]
            sums = self._reduce_parts([part for of_var in parts for part in of_var], flags)
        pairs = []
        for of_var, (grad, variable) in zip(parts, grads):
            reduced = [sums[part.name] for part in of_var]
            is_sparse = isinstance(grad, tf.IndexedSlices)
            pairs.append((_sparse(*reduced) if is_sparse else reduced[0], variable))
        return pairs

    def add_up(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the sum of a tensor over the workers; for layers. Only a step may run it."""
        dtype = tensor.dtype.base_dtype
        if not tensor.shape.is_fully_defined() or dtype not in _ON_THE_WIRE:
            raise ValueError(
                f"Workers cannot add up {tensor.name}, {dtype.name} {tensor.shape}: it needs a "
                "known shape, and numbers with a fraction."
            )
        with tf.device(_CPU), tf.name_scope("Exchange/add_up"):
            self._sums += 1
            return self._all_reduce(tensor, _FIRST_SUM + self._sums, average=False)

    def _all_reduce(self, tensor: tf.Tensor, number: int, average: bool) -> tf.Tensor:
        self.waits.append(all_reduce(tensor, self._size, self._first_key + number, average))
        self.bytes += _bytes(tensor)
        return self.waits[-1]

    def _reduce_parts(self, parts: Sequence[tf.Tensor], flags: tf.Tensor) -> Dict[str, tf.Tensor]:
        """Returns the sum of each tensor, by its name; they travel packed."""
        totals: Dict[str, tf.Tensor] = {}
        buckets = self._buckets(parts)
        for number, (wire, bucket) in enumerate(buckets):
            flat = [tf.reshape(tf.cast(part, wire), [-1]) for part in bucket]
            if number == len(buckets) - 1:
                flat.append(tf.cast(flags, wire))
            vector = tf.concat(flat, 0) if len(flat) > 1 else flat[0]
            total = self._all_reduce(vector, number, self._average)
            pieces = tf.split(total, [part.shape.num_elements() for part in flat])
            for part, piece in zip(bucket, pieces):
                totals[part.name] = tf.cast(tf.reshape(piece, part.shape), part.dtype)
        sums = tf.cast(pieces[-1], tf.float32)
        self.flags = tf.round(sums * (self._size if self._average else 1), name="flags")
        return totals

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
    if not shape.is_fully_defined():
        raise ValueError(
            f"The gradient of {variable.op.name} cannot be exchanged: the variable has the shape "
            f"{shape}. Give it one that is known when the graph is built."
        )
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
