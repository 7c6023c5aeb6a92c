"""The ops by which workers add up their gradients in each step, and start with the same variables.

A collective op waits for the other workers, and on TensorFlow 1.15 nothing ends that wait. So it
does not run in the training step: the step puts its gradients into queues and takes the sums out of
others, and a second session runs the collectives between them. A queue can be closed at any time.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.dependency import dependency_of_fetches
from tensorpack.tfutils.queues import hide_queue
from tensorpack.utils import logger

_BUCKET_BYTES = 4 << 20
_GROUP_KEY = 1
_CPU = "/device:CPU:0"
_FIRST_SUM = 1000  # the keys of sums are after those of gradients
HAS_HALF = tf_version() >= (2,)  # whether collectives can add up float16
_ON_THE_WIRE = (tf.float32, tf.float64, *[tf.float16] * HAS_HALF)
_BROADCAST_AS = {  # the types of variables, and as what collectives can send them
    **dict.fromkeys((tf.float32, tf.float16, tf.bfloat16), tf.float32),
    **dict.fromkeys((tf.int32, tf.bool, tf.int8, tf.int16, tf.uint8, tf.uint16), tf.int32),
    **dict.fromkeys((tf.int64, tf.uint32), tf.int64),
    tf.float64: tf.float64,
}

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
            sent = _BROADCAST_AS.get(dtype)
            if sent is None or not shape.is_fully_defined():
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


class _Part(NamedTuple):
    """A dense tensor that is sent, and where it belongs."""

    tensor: tf.Tensor
    shape: List[int]
    dtype: tf.DType  # of the gradient; that on the wire may be another

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class _Bucket:
    """Parts that travel together, as one vector through one collective."""

    def __init__(self, wire: tf.DType, key: int, parts: Sequence[_Part], flags: int) -> None:
        self.parts, self.flags, self.wire = list(parts), flags, wire
        self.length = sum(part.size for part in parts) + flags
        self.sent, self.received = [
            tf.queue.FIFOQueue(2, [wire], [[self.length]], shared_name=name, name=name)
            for name in (f"exchange_sent_{key}", f"exchange_received_{key}")
        ]
        hide_queue(self.sent)
        hide_queue(self.received)

    def pack(self, flags: Optional[tf.Tensor]) -> tf.Tensor:
        flat = [tf.reshape(tf.cast(part.tensor, self.wire), [-1]) for part in self.parts]
        if flags is not None:
            flat.append(tf.cast(flags, self.wire))
        return tf.concat(flat, 0) if len(flat) > 1 else flat[0]

    def unpack(self, vector: tf.Tensor) -> List[tf.Tensor]:
        pieces = tf.split(vector, [part.size for part in self.parts] + [self.flags])
        return [
            tf.cast(tf.reshape(piece, part.shape), part.dtype)
            for piece, part in zip(pieces, self.parts)
        ]


class Exchange:
    """Adds up gradients over a group of workers, and other tensors within the step.

    With the gradients travels a **flag** of each worker, a small integer: 0 to continue. A positive
    one announces that this worker wants all to leave after this step. A negative one says that the
    worker has left already, so there are no sums, and the step of the others gets none.

    Args:
      wire: dtype in which float32 gradients travel: float32, or float16 for half the bytes.
      first_key: of the collectives, and in the names of the queues. Different for each exchange of
        a process, as its server lives on; the same on all workers.

    Attributes:
      send: the op that sends the gradients; the step must run it together with the update.
      flags: float32 `[size]`, the flags of all workers in the step.
      collect: float32 `[size]`; each run does the collectives of one step, and returns the flags.
      close: the op that closes the queues, so that a step that waits for sums ends.
      bytes: how many bytes of gradients, and of other sums, a worker has in a step.
    """

    def __init__(
        self,
        size: int,
        index: int,
        average: bool = True,
        wire: tf.DType = tf.float32,
        first_key: int = 1,
    ) -> None:
        self._size, self._index, self._average = size, index, average
        self._wire, self._first_key = wire, first_key
        self._sums: List[Tuple[_Bucket, tf.Tensor]] = []  # with what comes back
        self._grads: List[Tuple[_Bucket, tf.Tensor]] = []
        with tf.device(_CPU), tf.name_scope("Exchange"):
            self._flag = tf.get_variable(
                "exchange_flag",
                initializer=0.0,
                trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
                use_resource=True,
            )
            self._new_flag = tf.placeholder(tf.float32, [])
            self._set_flag = self._flag.assign(self._new_flag, read_value=False)

    def reduce(self, grads: GradsAndVars) -> List[Tuple[Any, tf.Variable]]:
        """Returns the (sum or average, variable) pairs of all workers' pairs. Called once.

        A gradient that is an `IndexedSlices` travels as a dense one, and comes back with the rows
        that any worker has.
        """
        if not grads:
            raise ValueError("There is no gradient to exchange: no variable is trained.")
        with tf.device(_CPU), tf.name_scope("Exchange"):
            parts = [_parts_of(grad, variable) for grad, variable in grads]
            buckets = self._buckets([part for each in parts for part in each])
            received = self._connect(buckets)
            pairs = []
            for own, (grad, variable) in zip(parts, grads):
                sums = [received[id(part)] for part in own]
                is_sparse = isinstance(grad, tf.IndexedSlices)
                pairs.append((_sparse(*sums) if is_sparse else sums[0], variable))
        return pairs

    def add_up(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the sum of a tensor over the workers; for layers, so before `reduce`.

        Each step exchanges it once, whatever depends on it; no other run may ask for it, see
        `check_run`.
        """
        shape, dtype = tensor.shape, tensor.dtype.base_dtype
        if not shape.is_fully_defined() or dtype not in _ON_THE_WIRE:
            raise ValueError(
                f"Workers cannot add up {tensor.name}, {dtype.name} {shape}: it needs a known "
                "shape, and numbers with a fraction."
            )
        with tf.device(_CPU), tf.name_scope("Exchange/add_up"):
            key = self._first_key + _FIRST_SUM + len(self._sums)
            bucket = _Bucket(dtype, key, [_Part(tensor, shape.as_list(), dtype)], 0)
            with tf.control_dependencies([bucket.sent.enqueue(bucket.pack(None))]):
                vector = bucket.received.dequeue()
            self._sums.append((bucket, vector))
            return bucket.unpack(vector)[0]

    def check_run(self, fetches: Any) -> None:
        """Raises RuntimeError if fetches need sums and are no step: they would wait for ever."""
        if dependency_of_fetches(fetches, self.send):
            return
        for bucket, vector in [*self._sums, *self._grads]:
            if dependency_of_fetches(fetches, vector):
                raise RuntimeError(
                    f"{bucket.parts[0].tensor.name} is summed over the workers inside the training "
                    "step and cannot be fetched outside it. Fetch it along with the step, as "
                    "MergeAllSummaries(run_alone=False) does, or use an inference tower."
                )

    def set_flag(self, sess: tf.Session, flag: int) -> None:
        """Sets the flag of this worker, from its next step on."""
        sess.run(self._set_flag, {self._new_flag: flag})

    def leave(self, sess: tf.Session, flag: int) -> None:
        """Takes part in one more exchange, with nothing but a negative flag."""
        sess.run(self._leave, {self._new_flag: flag})

    def _buckets(self, parts: Sequence[_Part]) -> List[_Bucket]:
        """Packs the parts; the gradients of the last layers come first, as they are made."""
        by_wire: Dict[tf.DType, List[List[_Part]]] = {}
        for part in reversed(parts):
            packs = by_wire.setdefault(self._wire_of(part.dtype), [[]])
            if sum(each.size * each.dtype.size for each in packs[-1]) >= _BUCKET_BYTES:
                packs.append([])
            packs[-1].append(part)
        loads = [(wire, load) for wire, each in by_wire.items() for load in each]
        last = len(loads) - 1
        return [
            _Bucket(wire, self._first_key + number, load, self._size if number == last else 0)
            for number, (wire, load) in enumerate(loads)
        ]

    def _wire_of(self, dtype: tf.DType) -> tf.DType:
        if dtype == tf.float32:
            return self._wire
        return dtype if dtype in _ON_THE_WIRE else tf.float32

    def _connect(self, buckets: Sequence[_Bucket]) -> Dict[int, tf.Tensor]:
        """Makes the ops between the queues; returns the sum of each part."""
        last = buckets[-1]
        slot = tf.one_hot(self._index, self._size)
        packed = [each.pack(None) for each in buckets[:-1]]
        # The flag says that this worker has all its gradients, so it is sent when it has.
        with tf.control_dependencies([*packed, *(part.tensor for part in last.parts)]):
            packed.append(last.pack(slot * self._flag.read_value()))
        sends = [each.sent.enqueue(vector) for each, vector in zip(buckets, packed)]
        self.send = tf.group(*sends, *[vector.op for _, vector in self._sums], name="send")
        everyone = [*[each for each, _ in self._sums], *buckets]
        zeros = [tf.zeros([each.length - each.flags], each.wire) for each in everyone]
        zeros[-1] = tf.concat([zeros[-1], tf.cast(slot * self._new_flag, last.wire)], 0)
        leaves = [each.sent.enqueue(vector) for each, vector in zip(everyone, zeros)]
        self._leave = tf.group(*leaves, name="leave")
        self._collect(buckets)
        got = [each.received.dequeue() for each in buckets]
        self._grads = list(zip(buckets, got))
        self.flags = self._flags_in(got[-1], name="flags")
        queues = [queue for each in everyone for queue in (each.sent, each.received)]
        self.close = tf.group(*[queue.close(cancel_pending_enqueues=True) for queue in queues])
        self.bytes = sum(each.length * each.wire.size for each in everyone)
        return {
            id(part): tensor
            for each, vector in zip(buckets, got)
            for part, tensor in zip(each.parts, each.unpack(vector))
        }

    def _collect(self, buckets: Sequence[_Bucket]) -> None:
        sums = [
            all_reduce(each.sent.dequeue(), self._size, self._first_key + number, self._average)
            for number, each in enumerate(buckets)
        ]
        flags = self._flags_in(sums[-1])
        all_stay = tf.reduce_min(flags) > -0.5
        puts = [
            each.received.enqueue(tf.raw_ops.Switch(data=vector, pred=all_stay).output_true)
            for each, vector in zip(buckets, sums)
        ]
        for number, (each, _) in enumerate(self._sums):
            key = self._first_key + _FIRST_SUM + number
            puts.append(each.received.enqueue(all_reduce(each.sent.dequeue(), self._size, key)))
        self.collect = (flags, tf.group(*puts, name="collect"))

    def _flags_in(self, vector: tf.Tensor, name: Optional[str] = None) -> tf.Tensor:
        flags = tf.cast(vector[-self._size :], tf.float32)
        return tf.round(flags * (self._size if self._average else 1), name=name)


def _parts_of(grad: Any, variable: tf.Variable) -> List[_Part]:
    """The gradient; of a sparse one, a dense one and how often each row is in it."""
    if not variable.shape.is_fully_defined():
        raise ValueError(
            f"The gradient of {variable.op.name} cannot be exchanged: the variable has the shape "
            f"{variable.shape}. Give it one that is known when the graph is built."
        )
    shape, dtype = variable.shape.as_list(), grad.dtype.base_dtype
    if not isinstance(grad, tf.IndexedSlices):
        return [_Part(grad, shape, dtype)]
    rows = shape[0]
    dense = tf.math.unsorted_segment_sum(grad.values, grad.indices, rows)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(grad.indices, dtype), grad.indices, rows)
    return [_Part(dense, shape, dtype), _Part(counts, [rows], dtype)]


def _sparse(dense: tf.Tensor, counts: tf.Tensor) -> tf.IndexedSlices:
    indices = tf.where(counts > 0)[:, 0]
    shape = tf.shape(dense, out_type=tf.int64)
    return tf.IndexedSlices(tf.gather(dense, indices), indices, shape)
