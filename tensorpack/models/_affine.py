"""What normalizing layers share: the scale `gamma` and the offset `beta`, and the formula."""

import numbers
from typing import Any, List, NamedTuple, Tuple

from tensorpack.compat import tfv1 as tf

from .registry import VariableHolder


class Affine(NamedTuple):
    """Offset and scale; None for one that is not used."""

    beta: Any
    gamma: Any

    def as_variables(self) -> VariableHolder:
        """Returns the variables that exist, by name."""
        return VariableHolder(**{k: v for k, v in self._asdict().items() if v is not None})


def get_affine(
    channels: int,
    dtype: tf.DType,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
) -> Affine:
    """Gets the variables, `[channels]`, from the current variable scope; arguments as in BatchNorm.

    `dtype` is that of the input; float16 input has float32 variables.
    """
    if isinstance(gamma_initializer, numbers.Number):
        gamma_initializer = tf.constant_initializer(gamma_initializer)

    def get(name: str, initializer: Any) -> Any:
        return tf.get_variable(name, [channels], parameter_dtype(dtype), initializer)

    return Affine(
        get("beta", beta_initializer or tf.zeros_initializer()) if center else None,
        get("gamma", gamma_initializer or tf.ones_initializer()) if scale else None,
    )


def parameter_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype of statistics and parameters for an input of this dtype."""
    return dtype.base_dtype if dtype.base_dtype.size >= 4 else tf.float32


def normalize_by_moments(
    inputs: tf.Tensor, axes: List[int], affine: Affine, shape: List[int], epsilon: float
) -> Tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Normalizes to mean 0 and variance 1 over `axes`, then applies `gamma` and `beta`.

    Args:
      shape: that of `gamma` and `beta`, with 1 for the axes along which they are repeated.

    Returns:
      The result, of the dtype of the input; mean and variance, with 1 for each of the axes.
    """
    beta, gamma = (None if each is None else tf.reshape(each, shape) for each in affine)
    precise = tf.cast(inputs, parameter_dtype(inputs.dtype))
    mean, variance = tf.nn.moments(precise, axes, keep_dims=True)
    normalized = tf.nn.batch_normalization(precise, mean, variance, beta, gamma, epsilon)
    return tf.cast(normalized, inputs.dtype), mean, variance
