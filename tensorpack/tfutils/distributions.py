"""Distributions whose parameters a network computes, such as the latent codes of an InfoGAN.

A batch of samples is float32 `[B, sample_dim]`. Parameters are float32 `[B, param_dim]`, a row for
each sample, or `[param_dim]`, one row for all::

    codes = ProductDistribution("codes", [CategoricalDistribution("digit", 10),
                                          GaussianDistribution("style", 2)])
    z = codes.sample(64, prior)
    theta = codes.encoder_activation(network(generate(z)))      # network: [64, codes.param_dim]
    cost = -tf.reduce_mean(codes.loglikelihood(z, theta))
"""

import math
from typing import Any, List, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count

_TINY = 1e-8  # a smaller probability or standard deviation counts as this one


class Distribution:
    """A family of distributions, one for each value of its parameters.

    The public methods check shapes, give every sample its row of parameters, and open a name scope.
    A subclass defines `param_dim`, `sample_dim`, `_loglikelihood`, `_sample`, and, where a row of
    arbitrary numbers is not a valid row of parameters, `_encoder_activation`.

    Args:
      name: of the distribution; begins the names of its ops.

    Attributes:
      param_dim: how many parameters there are.
      sample_dim: how many numbers make a sample.
    """

    param_dim: int
    sample_dim: int

    def __init__(self, name: str) -> None:
        self.name = name

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        """Returns `log p(x | theta)`, `[B]`, for `[B, sample_dim]` and `[B, param_dim]`."""
        raise NotImplementedError(f"{type(self).__name__} must define _loglikelihood.")

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        """Returns samples `[batch_size, sample_dim]` for parameters `[batch_size, param_dim]`."""
        raise NotImplementedError(f"{type(self).__name__} must define _sample.")

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        """Returns valid parameters for arbitrary numbers, both `[B, param_dim]`."""
        return dist_param

    def loglikelihood(self, x: Any, theta: Any) -> tf.Tensor:
        """Returns the logarithm of the probability or density of samples, float32 `[B]`."""
        with tf.name_scope(f"{self.name}_loglikelihood"):
            x = self._rows(x, self.sample_dim)
            return self._loglikelihood(x, self._rows_of_parameters(theta, _length(x)))

    def entropy(self, x: Any, theta: Any) -> tf.Tensor:
        """Returns the estimate `-mean(loglikelihood(x, theta))` of the entropy, a float32 scalar.

        It estimates the entropy in nats if `x` was sampled with `theta`, and the cross entropy if
        `x` was sampled from something else.
        """
        with tf.name_scope(f"{self.name}_entropy"):
            return tf.negative(tf.reduce_mean(self.loglikelihood(x, theta)), name="entropy")

    def sample(self, batch_size: Union[int, tf.Tensor], theta: Any) -> tf.Tensor:
        """Returns new samples, float32 `[batch_size, sample_dim]`; the size may be a tensor."""
        if not tf.is_tensor(batch_size):
            batch_size = as_count(f"{self.name}.sample()", "batch_size", batch_size)
        with tf.name_scope(f"{self.name}_sample"):
            samples = self._sample(batch_size, self._rows_of_parameters(theta, batch_size))
            return self._rows(samples, self.sample_dim)

    def encoder_activation(self, dist_param: Any) -> tf.Tensor:
        """Returns valid parameters, float32 `[B, param_dim]`, for what a network computed."""
        with tf.name_scope(f"{self.name}_encoder_activation"):
            return self._encoder_activation(self._rows(dist_param, self.param_dim))

    def _rows(self, value: Any, width: int) -> tf.Tensor:
        rows = tf.identity(tf.cast(value, tf.float32))
        rows.set_shape([None, width])
        return rows

    def _rows_of_parameters(self, theta: Any, length: Any) -> tf.Tensor:
        theta = tf.cast(theta, tf.float32)
        if theta.shape.ndims == 1:
            theta = tf.tile(theta[tf.newaxis], [length, 1])
        return self._rows(theta, self.param_dim)


class CategoricalDistribution(Distribution):
    """One of several classes; a sample is a one-hot vector, the parameters are probabilities."""

    def __init__(self, name: str, cardinality: int) -> None:
        super().__init__(name)
        self.cardinality = as_count("CategoricalDistribution", "cardinality", cardinality)
        self.param_dim = self.sample_dim = self.cardinality

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
        self.dim = self.sample_dim = as_count("GaussianDistribution", "dim", dim)
        self.param_dim = self.dim if fixed_std else 2 * self.dim
        self.fixed_std = fixed_std

    def _mean_and_std(self, theta: tf.Tensor) -> Sequence[tf.Tensor]:
        if self.fixed_std:
            return theta, tf.ones_like(theta)
        mean, std = tf.split(theta, 2, axis=1)
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
        self.param_dim = sum(each.param_dim for each in self.dists)
        self.sample_dim = sum(each.sample_dim for each in self.dists)

    def entropy(self, x: Any, theta: Any) -> List[tf.Tensor]:  # type: ignore[override]
        """Returns the estimate of each factor, as a list of float32 scalars; see `Distribution`."""
        with tf.name_scope(f"{self.name}_entropy"):
            x = self._rows(x, self.sample_dim)
            theta = self._rows_of_parameters(theta, _length(x))
            parts = zip(self.dists, self._samples(x), self._parameters(theta))
            return [each.entropy(*values) for each, *values in parts]

    def _loglikelihood(self, x: tf.Tensor, theta: tf.Tensor) -> tf.Tensor:
        parts = zip(self.dists, self._samples(x), self._parameters(theta))
        return tf.add_n([each.loglikelihood(*values) for each, *values in parts])

    def _sample(self, batch_size: Any, theta: tf.Tensor) -> tf.Tensor:
        parts = zip(self.dists, self._parameters(theta))
        return tf.concat([each.sample(batch_size, value) for each, value in parts], axis=1)

    def _encoder_activation(self, dist_param: tf.Tensor) -> tf.Tensor:
        parts = zip(self.dists, self._parameters(dist_param))
        return tf.concat([each.encoder_activation(value) for each, value in parts], axis=1)

    def _samples(self, x: tf.Tensor) -> List[tf.Tensor]:
        return tf.split(x, [each.sample_dim for each in self.dists], axis=1)

    def _parameters(self, theta: tf.Tensor) -> List[tf.Tensor]:
        return tf.split(theta, [each.param_dim for each in self.dists], axis=1)


def _length(rows: tf.Tensor) -> Any:
    """How many rows a matrix has: an integer where that is known, else a scalar tensor."""
    known = rows.shape.as_list()[0]
    return tf.shape(rows)[0] if known is None else known
