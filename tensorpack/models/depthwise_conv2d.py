"""Convolution of each channel of an image by itself."""

from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import get_data_format
from tensorpack.utils.checks import as_count

from ._checks import (
    IntPair,
    channel_axis,
    check_image,
    check_padding,
    check_sizes,
    check_steps,
    per_axis,
)
from ._legacy_names import RENAMED
from ._weights import finish, get_weights
from .registry import layer_register


@layer_register(spelling=RENAMED["DepthwiseConv2D"])
def DepthwiseConv2D(
    inputs: tf.Tensor,
    kernel_size: IntPair,
    strides: int = 1,
    padding: str = "same",
    depth_multiplier: int = 1,
    *,
    data_format: str = "channels_last",
    dilation_rate: IntPair = 1,
    activation: Optional[Callable[..., Any]] = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Optional[Callable[..., Any]] = None,
    bias_regularizer: Optional[Callable[..., Any]] = None,
    activity_regularizer: Optional[Callable[..., Any]] = None,
) -> tf.Tensor:
    """Convolves each channel with kernels of its own, without mixing channels.

    Variables: `W` `[h, w, channels, depth_multiplier]`, `b` `[channels * depth_multiplier]`. A
    `Conv2D` with a kernel of one pixel after it makes the pair a separable convolution. Arguments
    that are not listed are those of `Conv2D`.

    Args:
      strides: step in pixels, the same in both directions.
      depth_multiplier: number of outputs for each channel; those of one channel are neighbours.
      kernel_initializer: of `W`; by default He's, an untruncated normal distribution of variance
        2 / (h * w).

    Returns:
      The op `<layer>/output`, `[N, H', W', channels * depth_multiplier]` (or channels first), with
      the `.variables` `W` and `b`.
    """
    layer_name = "DepthwiseConv2D"
    data_format = get_data_format(data_format)
    inputs = check_image(layer_name, inputs, data_format)
    window = check_sizes(layer_name, "kernel_size", kernel_size)
    steps, dilation = check_steps(layer_name, strides, dilation_rate)
    if steps[0] != steps[1]:
        raise ValueError(f"{layer_name} needs equal strides down and across, got {strides!r}.")
    multiplier = as_count(layer_name, "depth_multiplier", depth_multiplier)
    channels = inputs.shape.as_list()[channel_axis(data_format)]
    he = tf.random_normal_initializer(0.0, (2.0 / (window[0] * window[1])) ** 0.5)
    weights = get_weights(
        [*window, channels, multiplier],
        channels * multiplier,
        inputs.dtype.base_dtype,
        use_bias,
        kernel_initializer or he,
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
    )
    convolved = tf.nn.depthwise_conv2d(
        inputs,
        weights.W,
        per_axis(steps, data_format),
        check_padding(layer_name, padding),
        rate=dilation,
        data_format=data_format,
    )
    return finish(convolved, weights, activation, activity_regularizer, data_format)
