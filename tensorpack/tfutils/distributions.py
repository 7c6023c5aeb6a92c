"""Distributions whose parameters a network computes, such as the latent codes of an InfoGAN::

codes = ProductDistribution("codes", [CategoricalDistribution("digit", 10),
                                      GaussianDistribution("style", 2)])
z = codes.sample(64, prior)
theta = codes.encoder_activation(network(generate(z)))      # network: [64, codes.param_dim]
cost = -tf.reduce_mean(codes.loglikelihood(z, theta))
"""

import math
from typing import Any, List, Sequence, Union

from tensorpack.compat import tfv1 as tf

_TINY = 1e-8  # a smaller probability or standard deviation counts as this one


class Distribution:
    """A family of distributions. A subclass defines `param_dim`, `sample_dim`, `_loglikelihood`,
    `_sample`, and, where arbitrary numbers are not valid parameters, `_encoder_activation`.

    Attributes:
      param_dim: parameters are float32 `[B, param_dim]`, or `[param_dim]` for all samples.
      sample_dim: samples are float32 `[B, sample_dim]`.
    """

    param_dim: int
    sample_dim: int

    def __init__(self, name: str) -> None:
        self.name = name

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _loglikelihood.")

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _sample.")

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        return dist_param

    def loglikelihood(self, x: Any, theta: Any) -> tf.Tensor:
        """Returns the logarithm of the probability or density of samples, float32 `[B]`."""
        with tf.name_scope(f"{self.name}_loglikelihood"):
            return self._loglikelihood(tf.cast(x, tf.float32), tf.cast(theta, tf.float32))

    def entropy(self, x: Any, theta: Any) -> Any:
        """Returns the estimate `-mean(loglikelihood(x, theta))` of the entropy, a float32 scalar.

        It is the cross entropy if `x` was sampled from something else than `theta`.
        """
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
    """A normal distribution of independent components.

    Args:
      fixed_std: whether the standard deviation is 1 and the parameters are the means. Otherwise
        the parameters are the means, followed by the standard deviations.
    """

    def __init__(self, name: str, dim: int, fixed_std: bool = True) -> None:
        super().__init__(name)
        self.dim = self.sample_dim = dim
        self.param_dim = self.dim if fixed_std else 2 * self.dim
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
            return [dist.entropy(*values) for dist, *values in self._parts(x, theta)]

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        return tf.add_n([dist.loglikelihood(*values) for dist, *values in self._parts(x, theta)])

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        parts = zip(self.dists, self._parameters(theta))
        return tf.concat([dist.sample(batch_size, value) for dist, value in parts], axis=1)

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        parts = zip(self.dists, self._parameters(dist_param))
        return tf.concat([dist.encoder_activation(value) for dist, value in parts], axis=1)

    def _parts(self, x: Any, theta: Any) -> Any:
        samples = tf.split(x, [dist.sample_dim for dist in self.dists], axis=1)
        return zip(self.dists, samples, self._parameters(theta))

    def _parameters(self, theta: Any) -> List[tf.Tensor]:
        return tf.split(theta, [dist.param_dim for dist in self.dists], axis=-1)
