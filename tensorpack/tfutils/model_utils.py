"""Puts a model into words: the table of trainable variables, and the text form of shapes."""

from typing import Any, Sequence, Union

from tabulate import tabulate

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

_FEW = 8  # variables, of which the table is short


def describe_trainable_vars() -> None:
    """Logs a table of the trainable variables; of many, a terminal has the sum."""
    variables = tf.trainable_variables()
    if not variables:
        logger.warn("There are no trainable variables in the graph!")
        return
    rows = [[v.name, get_shape_str(v), v.shape.num_elements()] for v in variables]
    total = sum(count or 0 for _, _, count in rows)  # None: it varies
    table = tabulate(rows, headers=["name", "shape", "dim"])
    text = f"#vars={len(rows)}, #param={total} ({total / 2**18:.02f} MB assuming all float32)"
    is_short = len(rows) <= _FEW or logger.is_verbose()
    (logger.info if is_short else logger.detail)(f"Model Parameters: \n{table}\nTotal {text}")
    if not is_short:
        logger.info(f"The model has {text}. TENSORPACK_VERBOSE=1 lists them here, as log.log does.")


describe_model = describe_trainable_vars  # its name of 2017


def get_shape_str(tensors: Union[tf.Tensor, Sequence[Any]]) -> str:
    """Returns shapes in words: `[None, 84, 84, 4]` for a tensor, joined by `, ` for a list.

    What has no shape, such as a number among the tensors, is written as it is; a tensor of unknown
    rank as `?`.
    """
    if isinstance(tensors, (list, tuple)):
        return ", ".join(get_shape_str(tensor) for tensor in tensors)
    shape = getattr(tensors, "shape", None)
    if not isinstance(shape, tf.TensorShape):
        return str(tensors)
    return "?" if shape.ndims is None else str(shape.as_list())


def apply_slim_collections(cost: tf.Tensor) -> tf.Tensor:
    """Returns a cost with the regularization losses of the graph; it runs the `UPDATE_OPS`."""
    losses = tf.losses.get_regularization_losses()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return tf.add_n([cost, *losses], name="total_cost")
