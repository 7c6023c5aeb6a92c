"""Gives all workers of a group the variables of worker 0."""

from typing import Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .exchange import GROUP_KEY

# What collectives can send, and as what they send the other types.
_SENT = (tf.float32, tf.float64, tf.int32, tf.int64)
_SENT_AS = {
    tf.float16: tf.float32,
    tf.bfloat16: tf.float32,
    tf.bool: tf.int32,
    tf.int8: tf.int32,
    tf.int16: tf.int32,
    tf.uint8: tf.int32,
    tf.uint16: tf.int32,
    tf.uint32: tf.int64,
}


def broadcast_op(
    variables: Sequence[tf.Variable], size: int, index: int, first_key: int
) -> tf.Operation:
    """Returns an op that sets variables to their values in worker 0. All workers must run it.

    Args:
      variables: the same on all workers, in this order. Those whose shape is not known, or of a
        type that cannot be sent, such as strings, are left out, with a warning.
      size: number of workers.
      index: of this one.
      first_key: see `all_reduce`; the variables use as many as there are, from this on.
    """
    ops, left_out = [], []
    with tf.name_scope("Broadcast"):
        for number, variable in enumerate(variables):
            dtype = variable.dtype.base_dtype
            sent = dtype if dtype in _SENT else _SENT_AS.get(dtype)
            if sent is None or not variable.shape.is_fully_defined():
                left_out.append(variable.op.name)
                continue
            with tf.device("/device:CPU:0"):
                options = {
                    "group_size": size,
                    "group_key": GROUP_KEY,
                    "instance_key": first_key + number,
                    "shape": variable.shape,
                }
                if index == 0:
                    value = tf.cast(variable.read_value(), sent)
                    ops.append(tf.raw_ops.CollectiveBcastSend(input=value, **options).op)
                    continue
                value = tf.cast(tf.raw_ops.CollectiveBcastRecv(T=sent, **options), dtype)
            ops.append(variable.assign(value, read_value=False))
        if left_out:
            logger.warning(
                f"These variables may differ between the workers, because their shape or type "
                f"cannot be sent: {', '.join(left_out)}."
            )
        return tf.group(*ops, name="broadcast")
