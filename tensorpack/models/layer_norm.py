"""Normalization within each example: over all its values, or each channel or group of them."""

from typing import Any, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count

from ._checks import channels_of, check_floating, check_image
from ._legacy_names import RENAMED
from ._normalization import Affine, get_affine, normalize_by_moments
from .registry import layer_register


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
    """
    if tf.convert_to_tensor(inputs).shape.ndims == 2:
        inputs, data_format = check_floating("LayerNorm", inputs), "NC"
    else:
        inputs, data_format = check_image("LayerNorm", inputs, data_format)
    axes = list(range(1, len(data_format)))
    return _normalize(inputs, axes, data_format, epsilon, center, scale, None, gamma_initializer)


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

    Variables, the result, and arguments that are not listed are those of `LayerNorm`.

    Reference: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", 2016.

    Args:
      inputs: floating, `[N, H, W, C]` or `[N, C, H, W]`; C must be known.
      use_affine: if given, sets both `center` and `scale`.
    """
    inputs, data_format = check_image("InstanceNorm", inputs, data_format)
    if use_affine is not None:
        center = scale = use_affine
    axes = [data_format.index(axis) for axis in "HW"]
    return _normalize(inputs, axes, data_format, epsilon, center, scale, None, gamma_initializer)


@layer_register(log_shape=False, spelling=RENAMED["GroupNorm"])
def GroupNorm(
    inputs: tf.Tensor,
    groups: int = 32,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    data_format: str = "channels_last",
    *,
    gamma_initializer: Any = None,
) -> tf.Tensor:
    """Normalizes each group of channels of each image to mean 0 and variance 1.

    Variables, the result, and arguments that are not listed are those of `LayerNorm`.

    Reference: Wu and He, "Group Normalization", 2018.

    Args:
      inputs: floating, `[N, H, W, C]` or `[N, C, H, W]`; C must be known.
      groups: how many; C must be a multiple of it, and neighbouring channels form a group.
    """
    inputs, data_format = check_image("GroupNorm", inputs, data_format)
    groups = as_count("GroupNorm", "groups", groups)
    axis = data_format.index("C")
    channels = channels_of(inputs, data_format)
    if channels % groups:
        raise ValueError(
            f"GroupNorm: groups={groups} must divide the number of channels, {channels}."
        )
    affine = get_affine(channels, inputs.dtype, center, scale, gamma_initializer=gamma_initializer)
    sizes = tf.unstack(tf.shape(inputs), num=4)
    split = [groups, channels // groups]
    parted = tf.reshape(inputs, tf.stack([*sizes[:axis], *split, *sizes[axis + 1 :]]))
    axes = [i for i in (1, 2, 3, 4) if i != axis]
    shape = [1] * axis + split + [1] * (3 - axis)
    normalized = normalize_by_moments(parted, axes, affine, shape, epsilon)[0]
    return _finish(tf.reshape(normalized, tf.stack(sizes)), inputs, affine)


def _normalize(
    inputs: tf.Tensor, axes: List[int], data_format: str, epsilon: float, *of_affine: Any
) -> tf.Tensor:
    """Normalizes over `axes`, then applies `gamma` and `beta` along the axis of the channels;
    `of_affine` are the last arguments of `get_affine`.
    """
    channels = channels_of(inputs, data_format)
    affine = get_affine(channels, inputs.dtype, *of_affine)
    shape = [channels if axis == "C" else 1 for axis in data_format]
    return _finish(normalize_by_moments(inputs, axes, affine, shape, epsilon)[0], inputs, affine)


def _finish(normalized: tf.Tensor, inputs: tf.Tensor, affine: Affine) -> tf.Tensor:
    output = tf.identity(normalized, name="output")
    output.set_shape(inputs.shape)
    output.variables = affine.as_variables()
    return output
