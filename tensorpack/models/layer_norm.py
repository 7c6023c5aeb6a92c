"""Normalization within each example: over all its values, or over each channel."""

from typing import Any, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import get_data_format

from ._affine import get_affine, parameter_dtype
from ._checks import channel_axis, check_floating, check_image
from ._legacy_names import RENAMED
from .registry import layer_register

__all__ = ["InstanceNorm", "LayerNorm"]


@layer_register(log_shape=False, spelling=RENAMED["LayerNorm"])
def LayerNorm(
    inputs: tf.Tensor,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    data_format: str = "channels_last",
    *,
    gamma_initializer: Any = None,
) -> tf.Tensor:
    """Normalizes each example to mean 0 and variance 1. Variables: `beta`, `gamma` `[C]`.

    Reference: Ba, Kiros and Hinton, "Layer Normalization", 2016.

    Args:
      inputs: floating, `[N, C]`, `[N, H, W, C]`, or `[N, C, H, W]`; C must be known.
      epsilon: added to the variance.
      center: whether to use `beta`.
      scale: whether to use `gamma`.
      data_format: of images, `"channels_last"`/`"NHWC"` or `"channels_first"`/`"NCHW"`.
      gamma_initializer: an initializer or a number; ones by default.

    Returns:
      The op `<layer>/output`, like `inputs`, with the `.variables` `beta` and `gamma`.

    Raises:
      ValueError: the input is not such a tensor.
    """
    data_format = get_data_format(data_format)
    inputs = tf.convert_to_tensor(inputs)
    if inputs.shape.ndims == 2 and inputs.shape.as_list()[1] is not None:
        check_floating("LayerNorm", inputs)
        return _normalize(inputs, [1], 1, epsilon, center, scale, gamma_initializer)
    check_image("LayerNorm", inputs, data_format)
    axis = channel_axis(data_format)
    return _normalize(inputs, [1, 2, 3], axis, epsilon, center, scale, gamma_initializer)


@layer_register(log_shape=False, spelling=RENAMED["InstanceNorm"])
def InstanceNorm(
    inputs: tf.Tensor,
    epsilon: float = 1e-5,
    data_format: str = "channels_last",
    use_affine: Optional[bool] = None,
    *,
    center: bool = True,
    scale: bool = True,
    gamma_initializer: Any = None,
) -> tf.Tensor:
    """Normalizes each channel of each image to mean 0 and variance 1.

    Variables and arguments that are not listed are those of `LayerNorm`.

    Reference: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", 2016.

    Args:
      inputs: floating, `[N, H, W, C]` or `[N, C, H, W]`; C must be known.
      use_affine: if given, sets both `center` and `scale`.

    Returns:
      The op `<layer>/output`, like `inputs`, with the `.variables` `beta` and `gamma`.

    Raises:
      ValueError: the input is not such a tensor.
    """
    data_format = get_data_format(data_format)
    inputs = check_image("InstanceNorm", inputs, data_format)
    if use_affine is not None:
        center = scale = use_affine
    height_axis = data_format.index("H")
    axes, axis = [height_axis, height_axis + 1], channel_axis(data_format)
    return _normalize(inputs, axes, axis, epsilon, center, scale, gamma_initializer)


def _normalize(
    inputs: tf.Tensor,
    axes: List[int],
    channels_at: int,
    epsilon: float,
    center: bool,
    scale: bool,
    gamma_initializer: Any,
) -> tf.Tensor:
    """Normalizes over `axes`, then applies `gamma` and `beta` along the axis of the channels."""
    channels = inputs.shape.as_list()[channels_at]
    affine = get_affine(channels, inputs.dtype, center, scale, gamma_initializer=gamma_initializer)
    aligned = [1] * inputs.shape.ndims
    aligned[channels_at] = channels
    beta, gamma = (None if each is None else tf.reshape(each, aligned) for each in affine)
    precise = tf.cast(inputs, parameter_dtype(inputs.dtype))
    mean, variance = tf.nn.moments(precise, axes, keep_dims=True)
    normalized = tf.nn.batch_normalization(precise, mean, variance, beta, gamma, epsilon)
    output = tf.identity(tf.cast(normalized, inputs.dtype), name="output")
    output.variables = affine.as_variables()
    return output
