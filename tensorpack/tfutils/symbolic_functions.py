"""Small ops, losses and distributions that models of 2017 use; new ones should call TensorFlow."""

import math
from typing import Any, ContextManager, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import memoized

from .common import precise
from .summary import create_scalar_summary, root_mean_square

_TINY = 1e-8  # a smaller probability or standard deviation counts as this one
LossAndDistances = Union[tf.Tensor, Tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


def prediction_incorrect(
    logits: tf.Tensor, label: tf.Tensor, topk: int = 1, name: str = "incorrect_vector"
) -> tf.Tensor:
    """Returns 1 where the label is not among the best `topk` logits, else 0; float32 `[B]`."""
    return tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, topk)), tf.float32, name=name)


def accuracy(
    logits: tf.Tensor, label: tf.Tensor, topk: int = 1, name: str = "accuracy"
) -> tf.Tensor:
    """Returns the share of labels among the best `topk` of the logits; float32 scalar."""
    return tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, label, topk), tf.float32), name=name)


def flatten(x: tf.Tensor) -> tf.Tensor:
    """Returns the elements of `x` as a vector."""
    return tf.reshape(x, [-1])


def batch_flatten(x: tf.Tensor) -> tf.Tensor:
    """Returns `x`, `[B, ...]`, as `[B, D]`; D is static where all but the first dimension are."""
    width = x.shape[1:].num_elements()
    width = tf.reduce_prod(tf.shape(x)[1:]) if width is None else width
    return tf.reshape(x, [tf.shape(x)[0], width])


def class_balanced_cross_entropy(
    pred: tf.Tensor, label: tf.Tensor, name: str = "cross_entropy_loss"
) -> tf.Tensor:
    """Returns the mean of `-b y log p - (1 - b) (1 - y) log(1 - p)`, with b the share of zeros
    among the labels: see "Holistically-Nested Edge Detection", https://arxiv.org/abs/1504.06375.
    """
    with tf.name_scope("class_balanced_cross_entropy"):
        probability, target = flatten(pred), tf.cast(flatten(label), tf.float32)
        negative_share, tiny = 1.0 - tf.reduce_mean(target), 1e-12
        positive = negative_share * target * tf.log(probability + tiny)
        negative = (1.0 - negative_share) * (1.0 - target) * tf.log(1.0 - probability + tiny)
    return tf.negative(tf.reduce_mean(positive + negative), name=name)


def class_balanced_sigmoid_cross_entropy(
    logits: tf.Tensor, label: tf.Tensor, name: str = "cross_entropy_loss"
) -> tf.Tensor:
    """Returns `class_balanced_cross_entropy` of `sigmoid(logits)`, computed stably."""
    with tf.name_scope("class_balanced_sigmoid_cross_entropy"):
        target = tf.cast(label, tf.float32)
        share = tf.reduce_mean(target)  # of positive labels
        weight = target * (1.0 - share) + (1.0 - target) * share
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
    peak = 20.0 * math.log10(1.0 if maxp is None else maxp)
    return tf.subtract(peak, 10.0 / math.log(10.0) * tf.log(error), name=name)


def guided_relu() -> ContextManager[None]:
    """Returns a context in which each new `tf.nn.relu` passes only positive gradients back, for
    a `saliency_map`. See "Striving for Simplicity", https://arxiv.org/abs/1412.6806.
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
    """Returns a placeholder with default `x` in which one or several dimensions are unknown."""
    sizes = x.shape.as_list()
    for dimension in np.atleast_1d(axis):
        sizes[dimension] = None
    return tf.placeholder_with_default(x, sizes, name=name)


def contrastive_loss(
    left: tf.Tensor,
    right: tf.Tensor,
    y: Any,
    margin: float,
    extra: bool = False,
    scope: str = "constrastive_loss",
) -> LossAndDistances:
    """Returns the mean of `(y d^2 + (1 - y) max(0, margin - d)^2) / 2`, d the Euclidean distance.

    See "Dimensionality Reduction by Learning an Invariant Mapping", 2006, whose Y is our `1 - y`.

    Args:
      left, right: float32 `[B, D]`.
      y: `[B]`, 1 or True where a pair is similar, else 0.
      extra: whether to return also the mean distances of the similar and of the dissimilar pairs.
    """
    with tf.name_scope(scope):
        similar = tf.cast(y, tf.float32)
        other = 1.0 - similar
        distance = _distance(left, right)
        pull = similar * tf.reduce_sum(tf.squared_difference(left, right), axis=1)
        push = other * tf.square(tf.nn.relu(margin - distance))
        loss = tf.multiply(0.5, _mean(pull + push), name="loss")
        if not extra:
            return loss
        return loss, _mean(distance, similar, "pos-dist"), _mean(distance, other, "neg-dist")


def siamese_cosine_loss(
    left: tf.Tensor, right: tf.Tensor, y: Any, scope: str = "cosine_loss"
) -> tf.Tensor:
    """Returns the mean of `(cos(left, right) - (2 y - 1))^2 / 2`; see `contrastive_loss`."""
    with tf.name_scope(scope):
        target = 2.0 * tf.cast(y, tf.float32) - 1.0
        cosine = tf.reduce_sum(tf.nn.l2_normalize(left, 1) * tf.nn.l2_normalize(right, 1), axis=1)
        return tf.multiply(0.5, _mean(tf.squared_difference(cosine, target)), name="loss")


def triplet_loss(
    anchor: tf.Tensor,
    positive: tf.Tensor,
    negative: tf.Tensor,
    margin: float,
    extra: bool = False,
    scope: str = "triplet_loss",
) -> LossAndDistances:
    """Returns the mean of `max(0, |anchor - positive|^2 - |anchor - negative|^2 + margin)`.

    See "FaceNet", https://arxiv.org/abs/1503.03832, where it is a sum. All are float32 `[B, D]`;
    with `extra`, also the mean distances of the anchor to positive and negative.
    """
    with tf.name_scope(scope):
        near = tf.reduce_sum(tf.squared_difference(anchor, positive), axis=1)
        far = tf.reduce_sum(tf.squared_difference(anchor, negative), axis=1)
        loss = _mean(tf.nn.relu(near - far + margin), name="loss")
        return (loss, *_mean_distances(anchor, positive, negative)) if extra else loss


def soft_triplet_loss(
    anchor: tf.Tensor,
    positive: tf.Tensor,
    negative: tf.Tensor,
    extra: bool = True,
    scope: str = "soft_triplet_loss",
) -> LossAndDistances:
    """Returns the mean of `log(1 + exp(|anchor - positive| - |anchor - negative|))`.

    See "Deep Metric Learning Using Triplet Network", https://arxiv.org/abs/1412.6622, and
    `triplet_loss`.
    """
    with tf.name_scope(scope):
        excess = _distance(anchor, positive) - _distance(anchor, negative)
        loss = _mean(tf.nn.softplus(excess), name="loss")
        return (loss, *_mean_distances(anchor, positive, negative)) if extra else loss


def _distance(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Euclidean distances, float32 `[B]`; the gradient is 0, not NaN, where the distance is 0."""
    square = tf.reduce_sum(tf.squared_difference(a, b), axis=1)
    apart = square > 0
    return tf.where(apart, tf.sqrt(tf.where(apart, square, tf.ones_like(square))), square)


def _mean_distances(anchor: tf.Tensor, positive: tf.Tensor, negative: tf.Tensor) -> List[tf.Tensor]:
    pairs = {"pos-dist": positive, "neg-dist": negative}
    return [_mean(_distance(anchor, x), name=name) for name, x in pairs.items()]


def _mean(values: tf.Tensor, weights: Any = None, name: str = "mean") -> tf.Tensor:
    """The weighted mean of a vector; 0 where there is no weight."""
    weights = tf.ones_like(values) if weights is None else weights
    return tf.div_no_nan(tf.reduce_sum(values * weights), tf.reduce_sum(weights), name=name)


class Distribution:
    """A family of distributions whose parameters a network computes.

    A subclass defines `_loglikelihood`, `_sample`, and, where arbitrary numbers are not valid
    parameters, `_encoder_activation`.

    Attributes:
      param_dim: parameters are float32 `[B, param_dim]`, or `[param_dim]` for all samples.
      sample_dim: samples are float32 `[B, sample_dim]`.
    """

    param_dim: int
    sample_dim: int

    def __init__(self, name: str) -> None:
        self.name = name

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        return dist_param

    def loglikelihood(self, x: Any, theta: Any) -> tf.Tensor:
        """Returns the logarithm of the probability or density of samples, float32 `[B]`."""
        with tf.name_scope(f"{self.name}_loglikelihood"):
            return self._loglikelihood(tf.cast(x, tf.float32), tf.cast(theta, tf.float32))

    def entropy(self, x: Any, theta: Any) -> Any:
        """Returns `-mean(loglikelihood(x, theta))`, an estimate if `x` was sampled from `theta`."""
        with tf.name_scope(f"{self.name}_entropy"):
            return tf.negative(tf.reduce_mean(self.loglikelihood(x, theta)), name="entropy")

    def sample(self, batch_size: Union[int, tf.Tensor], theta: Any) -> tf.Tensor:
        """Returns new samples, float32 `[batch_size, sample_dim]`."""
        with tf.name_scope(f"{self.name}_sample"):
            theta = tf.cast(theta, tf.float32)
            if theta.shape.ndims == 1:
                theta = tf.tile(theta[tf.newaxis], [batch_size, 1])
            return self._sample(batch_size, theta)

    def encoder_activation(self, dist_param: Any) -> tf.Tensor:
        """Returns valid parameters, float32 `[B, param_dim]`, for what a network computed."""
        with tf.name_scope(f"{self.name}_encoder_activation"):
            return self._encoder_activation(tf.cast(dist_param, tf.float32))


class CategoricalDistribution(Distribution):
    """One of several classes; a sample is a one-hot vector, the parameters are probabilities."""

    def __init__(self, name: str, cardinality: int) -> None:
        super().__init__(name)
        self.cardinality = self.param_dim = self.sample_dim = cardinality

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(x * tf.log(theta + _TINY), axis=1)

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        classes = tf.random.categorical(tf.log(theta + _TINY), 1)
        return tf.one_hot(classes[:, 0], self.cardinality)

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(dist_param)


class GaussianDistribution(Distribution):
    """A normal distribution of independent components; the parameters are the means, followed,
    without `fixed_std`, by the standard deviations, which are 1 otherwise.
    """

    def __init__(self, name: str, dim: int, fixed_std: bool = True) -> None:
        super().__init__(name)
        self.dim = self.sample_dim = dim
        self.param_dim = dim if fixed_std else 2 * dim
        self.fixed_std = fixed_std

    def _mean_and_std(self, theta: tf.Tensor) -> Sequence[tf.Tensor]:
        if self.fixed_std:
            return theta, tf.ones_like(theta)
        mean, std = tf.split(theta, 2, axis=-1)
        return mean, tf.maximum(std, _TINY)

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        mean, std = self._mean_and_std(theta)
        density = tf.log(std) + 0.5 * tf.square((x - mean) / std) + 0.5 * math.log(2 * math.pi)
        return -tf.reduce_sum(density, axis=1)

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        mean, std = self._mean_and_std(theta)
        return mean + std * tf.random.normal(tf.shape(mean))

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        if self.fixed_std:
            return dist_param
        mean, logarithm_of_std = tf.split(dist_param, 2, axis=1)
        return tf.concat([mean, tf.exp(logarithm_of_std)], axis=1)


class ProductDistribution(Distribution):
    """Independent distributions side by side; samples and parameters are concatenated in order."""

    def __init__(self, name: str, dists: Sequence[Distribution]) -> None:
        super().__init__(name)
        self.dists = list(dists)
        self.param_dim = sum(dist.param_dim for dist in self.dists)
        self.sample_dim = sum(dist.sample_dim for dist in self.dists)

    def entropy(self, x: Any, theta: Any) -> List[tf.Tensor]:
        """Returns the estimate of each factor, as a list of float32 scalars; see `Distribution`."""
        with tf.name_scope(f"{self.name}_entropy"):
            return [dist.entropy(*values) for dist, *values in self._parts(theta, x)]

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        return tf.add_n([dist.loglikelihood(*values) for dist, *values in self._parts(theta, x)])

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        return tf.concat([dist.sample(batch_size, part) for dist, part in self._parts(theta)], 1)

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        return tf.concat([dist.encoder_activation(x) for dist, x in self._parts(dist_param)], 1)

    def _parts(self, theta: Any, *samples: Any) -> Any:
        """Returns each distribution with its part of the samples and of the parameters."""
        parts = [tf.split(x, [dist.sample_dim for dist in self.dists], axis=1) for x in samples]
        return zip(self.dists, *parts, tf.split(theta, [d.param_dim for d in self.dists], axis=-1))
