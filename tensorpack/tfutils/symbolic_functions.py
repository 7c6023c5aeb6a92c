"""Small ops that models of 2017 use; new models should call TensorFlow directly."""

from typing import ContextManager, Optional, Sequence, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import memoized

from .common import precise
from .embedding_losses import (  # noqa: F401  (for those who import them here)
    contrastive_loss,
    siamese_cosine_loss,
    soft_triplet_loss,
    triplet_loss,
)
from .summary import create_scalar_summary, root_mean_square


def prediction_incorrect(
    logits: tf.Tensor, label: tf.Tensor, topk: int = 1, name: str = "incorrect_vector"
) -> tf.Tensor:
    """Returns 1 where the label is not among the best predictions, else 0; float32 `[B]`.

    Args:
      logits: float32 `[B, C]`.
      label: int32 or int64 `[B]`.
      topk: how many of the best predictions count; ties as in `tf.nn.in_top_k`.
    """
    return tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, topk)), tf.float32, name=name)


def accuracy(
    logits: tf.Tensor, label: tf.Tensor, topk: int = 1, name: str = "accuracy"
) -> tf.Tensor:
    """Returns the share of labels among the best predictions; float32 scalar.

    The arguments are those of `prediction_incorrect`.
    """
    return tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, label, topk), tf.float32), name=name)


def flatten(x: tf.Tensor) -> tf.Tensor:
    """Returns the elements of `x` as a vector."""
    return tf.reshape(x, [-1])


def batch_flatten(x: tf.Tensor) -> tf.Tensor:
    """Returns `x`, `[B, ...]`, as `[B, D]`; D is static where all but the first dimension are."""
    running = tf.shape(x)
    width = x.shape[1:].num_elements()
    if width is None:
        width = tf.reduce_prod(running[1:])
    return tf.reshape(x, [running[0], width])


def class_balanced_cross_entropy(
    pred: tf.Tensor, label: tf.Tensor, name: str = "cross_entropy_loss"
) -> tf.Tensor:
    """Returns the cross entropy of binary predictions with both classes weighted equally.

    With b the share of negative labels, the loss is the mean over all elements of
    `-b y log p - (1 - b) (1 - y) log(1 - p)`. See "Holistically-Nested Edge Detection",
    https://arxiv.org/abs/1504.06375, equation 2.

    Args:
      pred: float32, probabilities, of any shape.
      label: 0 or 1, of the same shape.
      name: of the result, a float32 scalar.
    """
    with tf.name_scope("class_balanced_cross_entropy"):
        probability, target = flatten(pred), tf.cast(flatten(label), tf.float32)
        negative_share = 1.0 - tf.reduce_mean(target)
        tiny = 1e-12
        positive = negative_share * target * tf.log(probability + tiny)
        negative = (1.0 - negative_share) * (1.0 - target) * tf.log(1.0 - probability + tiny)
    return tf.negative(tf.reduce_mean(positive + negative), name=name)


def class_balanced_sigmoid_cross_entropy(
    logits: tf.Tensor, label: tf.Tensor, name: str = "cross_entropy_loss"
) -> tf.Tensor:
    """Returns `class_balanced_cross_entropy` of `sigmoid(logits)`, computed stably.

    It is 0 where there is no positive label. The arguments are as there.
    """
    with tf.name_scope("class_balanced_sigmoid_cross_entropy"):
        target = tf.cast(label, tf.float32)
        positive_share = tf.reduce_mean(target)
        weight = target * (1.0 - positive_share) + (1.0 - target) * positive_share
        costs = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=target)
    return tf.reduce_mean(weight * costs, name=name)


def print_stat(x: tf.Tensor, message: Optional[str] = None) -> tf.Tensor:
    """Returns `x`, and prints its shape, mean, rms and first values whenever it is computed."""
    with tf.name_scope("print_stat"):
        data = [tf.shape(x), tf.reduce_mean(precise(x)), rms(x, name="rms"), x]
        text = f"{x.op.name if message is None else message}: "
        return tf.raw_ops.Print(input=x, data=data, message=text, summarize=20)


def rms(x: tf.Tensor, name: Optional[str] = None) -> tf.Tensor:
    """Returns what `root_mean_square` does, by default as `{op}/rms` in the scope of the op."""
    if name is not None:
        return root_mean_square(x, name=name)
    with tf.name_scope(None):
        return root_mean_square(x, name=x.op.name + "/rms")


def huber_loss(x: tf.Tensor, delta: float = 1, name: str = "huber_loss") -> tf.Tensor:
    """Returns `x^2 / 2` where `|x| <= delta`, else `delta (|x| - delta / 2)`; elementwise."""
    size = tf.abs(x)
    inside = tf.minimum(size, delta)
    # In the middle inside = |x|, beyond it inside = delta: one formula serves both.
    return tf.multiply(inside, size - 0.5 * inside, name=name)


def get_scalar_var(
    name: str, init_value: float, summary: bool = False, trainable: bool = False
) -> tf.Variable:
    """Returns a new float32 scalar variable, with a scalar summary `{name}-summary` if asked."""
    initializer = tf.constant_initializer(init_value)
    variable = tf.get_variable(name, [], tf.float32, initializer, trainable=trainable)
    if summary:
        create_scalar_summary(variable.op.name + "-summary", variable)
    return variable


def psnr(
    prediction: tf.Tensor, ground_truth: tf.Tensor, maxp: Optional[float] = None, name: str = "psnr"
) -> tf.Tensor:
    """Returns the peak signal-to-noise ratio `10 log10(maxp^2 / mean((a - b)^2))` in dB, a scalar.

    Both are float32, of one shape; `maxp` is the largest value a pixel can have, by default 1.
    """
    error = tf.reduce_mean(tf.squared_difference(prediction, ground_truth))
    peak = 20.0 * float(np.log10(1.0 if maxp is None else float(maxp)))
    return tf.subtract(peak, 10.0 / float(np.log(10.0)) * tf.log(error), name=name)


def guided_relu() -> ContextManager[None]:
    """Returns a context in which each new `tf.nn.relu` passes only positive gradients back.

    The gradient is that of the ReLU where the incoming gradient is positive, else 0: guided
    backpropagation, see "Striving for Simplicity", https://arxiv.org/abs/1412.6806. ::

        with guided_relu():
            logits = network(image)
        saliency = saliency_map(logits, image)
    """
    return tf.get_default_graph().gradient_override_map({"Relu": _guided_gradient()})


@memoized
def _guided_gradient() -> str:
    """The name of the gradient; TensorFlow refuses to register one twice."""
    name = "TensorpackGuidedRelu"

    @tf.RegisterGradient(name)
    def gradient(op: tf.Operation, incoming: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(incoming) * tf.cast(op.outputs[0] > 0, incoming.dtype)

    return name


def saliency_map(output: tf.Tensor, input: tf.Tensor, name: str = "saliency_map") -> tf.Tensor:
    """Returns the gradient of the largest of each row of `output`, `[B, C]`, for the input."""
    best = tf.reduce_max(output, axis=1)
    return tf.identity(tf.gradients(best, input)[0], name=name)


def shapeless_placeholder(
    x: tf.Tensor, axis: Union[int, Sequence[int]], name: Optional[str] = None
) -> tf.Tensor:
    """Returns a placeholder with default `x` in which the given dimensions are unknown.

    Args:
      x: a tensor of known rank.
      axis: the dimension or dimensions to make unknown; negative ones count from the end.
    """
    sizes = x.shape.as_list()
    for each in np.atleast_1d(axis):
        sizes[each] = None
    return tf.placeholder_with_default(x, sizes, name=name)
