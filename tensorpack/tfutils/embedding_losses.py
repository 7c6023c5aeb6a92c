"""Losses on distances between embeddings: of pairs, and of an anchor to two others.

Embeddings are float32 `[B, D]`, a loss is a float32 scalar: the mean over B, 0 where B is 0. The
gradient is finite everywhere: that of a distance is 0 where both embeddings are the same.
"""

from typing import Any, List, Tuple, Union

from tensorpack.compat import tfv1 as tf

LossAndDistances = Union[tf.Tensor, Tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


def contrastive_loss(
    left: tf.Tensor,
    right: tf.Tensor,
    y: Any,
    margin: float,
    extra: bool = False,
    scope: str = "constrastive_loss",
) -> LossAndDistances:
    """Draws similar pairs together, and pushes others apart until they are `margin` away.

    With `d` the Euclidean distance of a pair, the loss is the mean of
    `(y d^2 + (1 - y) max(0, margin - d)^2) / 2`. See "Dimensionality Reduction by Learning an
    Invariant Mapping", Hadsell, Chopra and LeCun, 2006, whose Y is our `1 - y`.

    Args:
      left, right: float32 `[B, D]`.
      y: `[B]`, 1 or True where a pair is similar, else 0.
      margin: distance from which dissimilar pairs cost nothing.

    Returns:
      The loss; with `extra`, also the mean distances of the similar and of the dissimilar pairs, 0
      where there are none.
    """
    with tf.name_scope(scope):
        left, right = _embeddings(left, right)
        similar = _labels(y, left)
        other = 1.0 - similar
        distance = _distance(left, right)
        pull = similar * tf.reduce_sum(tf.squared_difference(left, right), axis=1)
        push = other * tf.square(tf.nn.relu(margin - distance))
        loss = tf.multiply(0.5, _mean(pull + push), name="loss")
        if not extra:
            return loss
        near, far = _mean(distance, similar, "pos-dist"), _mean(distance, other, "neg-dist")
        return loss, near, far


def siamese_cosine_loss(
    left: tf.Tensor, right: tf.Tensor, y: Any, scope: str = "cosine_loss"
) -> tf.Tensor:
    """Draws the cosine of similar pairs to 1, and that of others to -1.

    The loss is the mean of `(cos(left, right) - (2 y - 1))^2 / 2`, where the cosine with a vector
    of zeros is 0. The arguments are those of `contrastive_loss`.
    """
    with tf.name_scope(scope):
        left, right = _embeddings(left, right)
        target = 2.0 * _labels(y, left) - 1.0
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
    """Pushes the negative farther from the anchor than the positive, by a margin of the squares.

    The loss is the mean of `max(0, |anchor - positive|^2 - |anchor - negative|^2 + margin)`. See
    "FaceNet: A Unified Embedding for Face Recognition and Clustering",
    https://arxiv.org/abs/1503.03832, where it is a sum.

    Args:
      anchor, positive: float32 `[B, D]`, of one class.
      negative: float32 `[B, D]`, of another class.

    Returns:
      The loss; with `extra`, also the mean distances of the anchor to positive and negative.
    """
    with tf.name_scope(scope):
        anchor, positive, negative = _embeddings(anchor, positive, negative)
        near = tf.reduce_sum(tf.squared_difference(anchor, positive), axis=1)
        far = tf.reduce_sum(tf.squared_difference(anchor, negative), axis=1)
        loss = tf.identity(_mean(tf.nn.relu(near - far + margin)), name="loss")
        return (loss, *_mean_distances(anchor, positive, negative)) if extra else loss


def soft_triplet_loss(
    anchor: tf.Tensor,
    positive: tf.Tensor,
    negative: tf.Tensor,
    extra: bool = True,
    scope: str = "soft_triplet_loss",
) -> LossAndDistances:
    """Pushes the negative farther from the anchor than the positive, without a margin.

    The softmax of the two distances is the probability that the negative is the farther one. The
    loss is the mean of its negative logarithm::

        log(1 + exp(|anchor - positive| - |anchor - negative|))

    The softmax is that of "Deep Metric Learning Using Triplet Network",
    https://arxiv.org/abs/1412.6622, which squares its error instead of taking the logarithm. The
    arguments and the result are those of `triplet_loss`.
    """
    with tf.name_scope(scope):
        anchor, positive, negative = _embeddings(anchor, positive, negative)
        excess = _distance(anchor, positive) - _distance(anchor, negative)
        loss = tf.identity(_mean(tf.nn.softplus(excess)), name="loss")
        return (loss, *_mean_distances(anchor, positive, negative)) if extra else loss


def _embeddings(*given: Any) -> List[tf.Tensor]:
    """The embeddings as tensors, after a check of their shapes."""
    tensors = [tf.cast(each, tf.float32) for each in given]
    shape = tf.TensorShape([None, None])
    for each in tensors:  # or they would be broadcast
        shape = shape.merge_with(each.shape)
    return tensors


def _labels(y: Any, embedding: tf.Tensor) -> tf.Tensor:
    labels = tf.cast(y, tf.float32)
    labels.shape.assert_is_compatible_with(embedding.shape[:1])
    return labels


def _distance(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Euclidean distances, float32 `[B]`; the gradient is 0, not NaN, where the distance is 0."""
    square = tf.reduce_sum(tf.squared_difference(a, b), axis=1)
    apart = square > 0
    return tf.where(apart, tf.sqrt(tf.where(apart, square, tf.ones_like(square))), square)


def _mean_distances(
    anchor: tf.Tensor, positive: tf.Tensor, negative: tf.Tensor
) -> Tuple[tf.Tensor, tf.Tensor]:
    near, far = _distance(anchor, positive), _distance(anchor, negative)
    return _mean(near, name="pos-dist"), _mean(far, name="neg-dist")


def _mean(values: tf.Tensor, weights: Any = None, name: str = "mean") -> tf.Tensor:
    """The weighted mean of a vector; 0 where there is no weight."""
    weights = tf.ones_like(values) if weights is None else weights
    return tf.div_no_nan(tf.reduce_sum(values * weights), tf.reduce_sum(weights), name=name)
