"""The affine part of a normalization: a scale `gamma` and an offset `beta` for each channel."""

import numbers
from typing import Any, List, NamedTuple, Optional

from tensorpack.compat import tfv1 as tf

from .registry import VariableHolder


class Affine(NamedTuple):
    """Offset and scale; None for one that is not used."""

    beta: Any
    gamma: Any

    def as_variables(self) -> VariableHolder:
        """Returns the variables that exist, by name."""
        return VariableHolder(**{k: v for k, v in self._asdict().items() if v is not None})

    def reshaped(self, shape: List[int]) -> "Affine":
        """Returns both with another shape, such as `[1, C, 1, 1]`."""
        return Affine(*(None if each is None else tf.reshape(each, shape) for each in self))


def get_affine(
    channels: int,
    dtype: tf.DType,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
) -> Affine:
    """Gets the variables from the current variable scope.

    Args:
      channels: their length.
      dtype: of the input; float16 input has float32 variables.
      center: whether to use `beta`.
      scale: whether to use `gamma`.
      beta_initializer: zeros by default.
      gamma_initializer: an initializer or a number; ones by default.
    """
    if isinstance(gamma_initializer, numbers.Number):
        gamma_initializer = tf.constant_initializer(gamma_initializer)

    def get(name: str, initializer: Any) -> Any:
        kind = parameter_dtype(dtype)
        return tf.get_variable(name, [channels], kind, initializer=initializer)

    beta: Optional[Any] = (
        get("beta", beta_initializer or tf.zeros_initializer()) if center else None
    )
    gamma: Optional[Any] = (
        get("gamma", gamma_initializer or tf.ones_initializer()) if scale else None
    )
    return Affine(beta, gamma)


def parameter_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype of statistics and parameters for an input of this dtype."""
    return dtype.base_dtype if dtype.base_dtype.size >= 4 else tf.float32
