"""Single summary ops, with exactly the tags that are asked for, and who may make them.

The ops live under the name scope `summaries/`, so that they take no name from the model.
"""

import re
from typing import Any, Iterable, Optional

from tensorpack.compat import tfv1 as tf

from .tower import get_current_tower_context

__all__ = [
    "create_histogram_summary",
    "create_scalar_summary",
    "in_main_training_tower",
    "op_name_of_tag",
    "root_mean_square",
    "tag_of_tensor",
]


def create_scalar_summary(
    tag: str, tensor: Any, collections: Optional[Iterable[str]] = None
) -> tf.Tensor:
    """Adds a summary of a numeric scalar under exactly this tag, and returns it (a string scalar).

    Args:
      tag: what the value is called in the log and in TensorBoard.
      tensor: a numeric scalar.
      collections: names of the collections that get the summary; `SUMMARIES` by default.
    """
    with tf.name_scope(None), tf.name_scope("summaries/"):
        summary = tf.raw_ops.ScalarSummary(
            tags=tag, values=tf.convert_to_tensor(tensor), name=op_name_of_tag(tag)
        )
    return _collect(summary, collections)


def create_histogram_summary(
    tag: str, tensor: Any, collections: Optional[Iterable[str]] = None
) -> tf.Tensor:
    """Adds a histogram of a numeric tensor of any shape; otherwise as `create_scalar_summary`."""
    with tf.name_scope(None), tf.name_scope("summaries/"):
        summary = tf.raw_ops.HistogramSummary(
            tag=tag, values=tf.convert_to_tensor(tensor), name=op_name_of_tag(tag) + "-histogram"
        )
    return _collect(summary, collections)


def _collect(summary: tf.Tensor, collections: Optional[Iterable[str]]) -> tf.Tensor:
    for key in [tf.GraphKeys.SUMMARIES] if collections is None else collections:
        tf.add_to_collection(key, summary)
    return summary


def in_main_training_tower() -> bool:
    """Returns whether summaries count here: outside of towers, and in the main training tower."""
    context = get_current_tower_context()
    return context is None or context.is_main_training_tower


def tag_of_tensor(tensor: tf.Tensor) -> str:
    """Returns the name of a tensor's op inside its tower, with `_k` for its output k > 0."""
    context = get_current_tower_context()
    name = tensor.op.name
    if context is not None and context.ns_name and name.startswith(context.ns_name + "/"):
        name = name[len(context.ns_name) + 1 :]
    return name if tensor.value_index == 0 else f"{name}_{tensor.value_index}"


def op_name_of_tag(tag: str) -> str:
    """Returns the tag with what an op name may not contain replaced."""
    return re.sub(r"[^A-Za-z0-9_.\-/]", "_", tag).strip("/") or "summary"


def root_mean_square(x: tf.Tensor, name: Optional[str] = None) -> tf.Tensor:
    """Returns the root mean square of all elements of a float tensor, a scalar."""
    # The loss is half the sum of squares, in one pass and without a tensor of all the squares: for
    # four million elements two to three times as fast as the mean of tf.square.
    twice = 2.0 / tf.cast(tf.size(x), x.dtype)
    return tf.sqrt(tf.nn.l2_loss(x) * twice, name=name)
