"""Convolution of images and its transpose, and convolution of volumes."""

from typing import Any, Callable, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count

from ._checks import IntPair, channels_of, check_image, check_sizes, per_axis
from ._legacy_names import RENAMED
from ._weights import finish, get_weights, he_normal
from .registry import layer_register
from .shape_utils import StaticDynamicShape


@layer_register(spelling=RENAMED["Conv2D"])
def Conv2D(
    inputs: tf.Tensor,
    filters: int,
    kernel_size: IntPair,
    padding: str = "same",
    strides: IntPair = 1,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    activation: Optional[Callable[..., Any]] = None,
    split: int = 1,
    use_bias: bool = True,
    data_format: str = "channels_last",
    *,
    dilation_rate: IntPair = 1,
    kernel_regularizer: Optional[Callable[..., Any]] = None,
    bias_regularizer: Optional[Callable[..., Any]] = None,
    activity_regularizer: Optional[Callable[..., Any]] = None,
) -> tf.Tensor:
    """Convolves images. Variables: `W` `[h, w, channels / split, filters]`, `b` `[filters]`.

    Args:
      inputs: floating `[N, H, W, C]`, or `[N, C, H, W]` with `data_format="channels_first"`; C must
        be known.
      filters: number of output channels.
      kernel_size: height and width of the kernel in pixels; one number for both.
      padding: `"same"` or `"valid"`, in any case.
      strides: step in pixels, down and across; one number for both.
      kernel_initializer: of `W`; by default He's, an untruncated normal distribution of variance
        2 / fan-in.
      bias_initializer: of `b`; zeros by default.
      activation: a function of a tensor and, optionally, `name`.
      split: number of groups of channels; each group of outputs depends on one group of inputs.
      use_bias: whether to use `b`.
      data_format: `"channels_last"`/`"NHWC"` or `"channels_first"`/`"NCHW"`.
      dilation_rate: distance in input pixels between taps of the kernel; one number for both.
      kernel_regularizer, bias_regularizer, activity_regularizer: functions of `W`, of `b` and of
        the output, whose result is divided by N; they are added to `REGULARIZATION_LOSSES`.

    Returns:
      The op `<layer>/output`, `[N, H', W', filters]` (or channels first), with the `.variables` `W`
      and `b`.
    """
    inputs, data_format = check_image("Conv2D", inputs, data_format)
    filters = as_count("Conv2D", "filters", filters)
    kernel_size = check_sizes("Conv2D", "kernel_size", kernel_size)
    channels = channels_of(inputs, data_format)
    split = as_count("Conv2D", "split", split)
    weights = get_weights(
        inputs,
        [*kernel_size, channels // split, filters],
        use_bias,
        (kernel_initializer or he_normal(), kernel_regularizer),
        (bias_initializer, bias_regularizer),
    )
    steps = check_sizes("Conv2D", "strides", strides)
    dilation = check_sizes("Conv2D", "dilation_rate", dilation_rate)
    padding = padding.upper()

    def convolve(image: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        if dilation == [1, 1]:
            step = per_axis(steps, data_format)
            return tf.nn.conv2d(image, kernel, step, padding, data_format=data_format)
        # The op's own `dilations` have no gradient on the CPU in TF 1.15.
        return tf.nn.convolution(image, kernel, padding, steps, dilation, None, data_format)

    if split == 1:
        convolved = convolve(inputs, weights.W)
    else:
        axis = data_format.index("C")
        groups = zip(tf.split(inputs, split, axis), tf.split(weights.W, split, 3))
        convolved = tf.concat([convolve(image, kernel) for image, kernel in groups], axis)
    return finish(convolved, weights, activation, activity_regularizer, data_format)


@layer_register(spelling=RENAMED["Conv2D"])
def Conv3D(
    inputs: tf.Tensor,
    filters: int,
    kernel_size: IntPair,
    padding: str = "same",
    strides: IntPair = 1,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    activation: Optional[Callable[..., Any]] = None,
    *,
    use_bias: bool = True,
    data_format: str = "channels_last",
    dilation_rate: IntPair = 1,
    kernel_regularizer: Optional[Callable[..., Any]] = None,
    bias_regularizer: Optional[Callable[..., Any]] = None,
    activity_regularizer: Optional[Callable[..., Any]] = None,
) -> tf.Tensor:
    """Convolves volumes. Variables: `W` `[d, h, w, channels, filters]`, `b` `[filters]`.

    It is `Conv2D` for a floating input `[N, D, H, W, C]`, or `[N, C, D, H, W]` with
    `data_format="channels_first"`; sizes are one number or three, (depth, height, width).
    """
    inputs, data_format = check_image("Conv3D", inputs, data_format, 3)
    filters = as_count("Conv3D", "filters", filters)
    window = check_sizes("Conv3D", "kernel_size", kernel_size, 3)
    steps = check_sizes("Conv3D", "strides", strides, 3)
    dilation = check_sizes("Conv3D", "dilation_rate", dilation_rate, 3)
    weights = get_weights(
        inputs,
        [*window, channels_of(inputs, data_format), filters],
        use_bias,
        (kernel_initializer or he_normal(), kernel_regularizer),
        (bias_initializer, bias_regularizer),
    )
    convolved = tf.nn.convolution(
        inputs, weights.W, padding.upper(), steps, dilation, None, data_format
    )
    return finish(convolved, weights, activation, activity_regularizer, data_format)


@layer_register(spelling=RENAMED["Conv2DTranspose"], aliases=["Deconv2D"])
def Conv2DTranspose(
    inputs: tf.Tensor,
    filters: Union[int, Sequence[int]],
    kernel_size: IntPair,
    strides: IntPair = 1,
    padding: str = "same",
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    activation: Optional[Callable[..., Any]] = None,
    use_bias: bool = True,
    data_format: str = "channels_last",
    *,
    dilation_rate: IntPair = 1,
    kernel_regularizer: Optional[Callable[..., Any]] = None,
    bias_regularizer: Optional[Callable[..., Any]] = None,
    activity_regularizer: Optional[Callable[..., Any]] = None,
) -> tf.Tensor:
    """Transposed convolution: the gradient of Conv2D with respect to its input, as a layer.

    Variables: `W` `[h, w, filters, channels]`, `b` `[filters]`. The other arguments are those of
    `Conv2D`.

    Args:
      filters: number of output channels, or the output's (height, width, channels), always in this
        order.
      strides: factor by which the image grows, down and across; one number for both.
      padding: `"same"` (the output is `strides` times as large) or `"valid"` (larger by what the
        kernel adds).
      dilation_rate: distance in output pixels between taps of the kernel; one number for both.

    Returns:
      The op `<layer>/output` with the `.variables` `W` and `b`.
    """
    layer_name = "Conv2DTranspose"
    inputs, data_format = check_image(layer_name, inputs, data_format)
    window = check_sizes(layer_name, "kernel_size", kernel_size)
    steps = check_sizes(layer_name, "strides", strides)
    padding = padding.upper()
    size, outputs = _parse_output_shape(layer_name, filters)
    weights = get_weights(
        inputs,
        [*window, outputs, channels_of(inputs, data_format)],
        use_bias,
        (kernel_initializer or he_normal(), kernel_regularizer),
        (bias_initializer, bias_regularizer),
        outputs,
    )
    kernel = _dilate(weights.W, check_sizes(layer_name, "dilation_rate", dilation_rate))
    window = kernel.shape.as_list()[:2]

    def grow(i: int) -> Callable[[Any], Any]:
        extra = max(window[i] - steps[i], 0) if padding == "VALID" else 0
        return lambda length: length * steps[i] + extra if size is None else size[i]

    shape = StaticDynamicShape(inputs)
    shape.apply(data_format.index("C"), lambda _: outputs)
    for i in (0, 1):
        shape.apply(data_format.index("H") + i, grow(i))
    grown = tf.nn.conv2d_transpose(
        inputs,
        kernel,
        shape.get_dynamic(),
        per_axis(steps, data_format),
        padding=padding,
        data_format=data_format,
    )
    grown.set_shape(shape.get_static())
    return finish(grown, weights, activation, activity_regularizer, data_format)


Deconv2D = Conv2DTranspose


@layer_register(spelling=RENAMED["DepthwiseConv2D"])
def DepthwiseConv2D(
    inputs: tf.Tensor,
    kernel_size: IntPair,
    strides: IntPair = 1,
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
      strides: step in pixels; not every device takes two different ones.
      depth_multiplier: number of outputs for each channel; those of one channel are neighbours.
      kernel_initializer: of `W`; by default He's, an untruncated normal distribution of variance
        2 / (h * w).

    Returns:
      The op `<layer>/output`, `[N, H', W', channels * depth_multiplier]` (or channels first), with
      the `.variables` `W` and `b`.
    """
    layer_name = "DepthwiseConv2D"
    inputs, data_format = check_image(layer_name, inputs, data_format)
    window = check_sizes(layer_name, "kernel_size", kernel_size)
    steps = check_sizes(layer_name, "strides", strides)
    dilation = check_sizes(layer_name, "dilation_rate", dilation_rate)
    if max(steps) > 1 and max(dilation) > 1:  # TensorFlow computes something else
        raise ValueError(f"{layer_name}: strides and dilation_rate cannot both be above 1.")
    multiplier = as_count(layer_name, "depth_multiplier", depth_multiplier)
    channels = channels_of(inputs, data_format)
    he = tf.random_normal_initializer(0.0, (2.0 / (window[0] * window[1])) ** 0.5)
    weights = get_weights(
        inputs,
        [*window, channels, multiplier],
        use_bias,
        (kernel_initializer or he, kernel_regularizer),
        (bias_initializer, bias_regularizer),
        channels * multiplier,
    )
    convolved = tf.nn.depthwise_conv2d(
        inputs,
        weights.W,
        per_axis(steps, data_format),
        padding.upper(),
        rate=dilation,
        data_format=data_format,
    )
    return finish(convolved, weights, activation, activity_regularizer, data_format)


def _parse_output_shape(layer_name: str, filters: Any) -> Any:
    """Returns the fixed (height, width), or None if strides decide, and the number of channels."""
    if not isinstance(filters, (list, tuple)):
        return None, as_count(layer_name, "filters", filters)
    height, width, channels = (as_count(layer_name, "output shape", size) for size in filters)
    return [height, width], channels


def _dilate(kernel: Any, dilation: Sequence[int]) -> Any:
    """Returns the kernel with zeros between its taps.

    TensorFlow has no transposed convolution with a dilation for both data formats.
    """
    if list(dilation) == [1, 1]:
        return kernel
    (rows, columns, *channels), (down, across) = kernel.shape.as_list(), dilation
    apart = tf.reshape(kernel, [rows, 1, columns, 1, *channels])
    apart = tf.pad(apart, [[0, 0], [0, down - 1], [0, 0], [0, across - 1], [0, 0], [0, 0]])
    spread = tf.reshape(apart, [rows * down, columns * across, *channels])
    return spread[: (rows - 1) * down + 1, : (columns - 1) * across + 1]
