"""Pooling of images and volumes; unpooling and sampling of images."""

from typing import Any, Callable, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import precise
from tensorpack.utils.argtools import axis_order
from tensorpack.utils.checks import as_count

from ._checks import IntPair, check_image, check_sizes, per_axis
from ._legacy_names import RENAMED
from .registry import layer_register
from .shape_utils import StaticDynamicShape

_BORDERS = ("repeat", "constant")


@layer_register(spelling=RENAMED["MaxPooling"])
def MaxPooling(
    inputs: tf.Tensor,
    pool_size: IntPair,
    strides: Optional[IntPair] = None,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> tf.Tensor:
    """Takes the maximum of each window of an image.

    Args:
      inputs: `[N, H, W, C]`, or `[N, C, H, W]` with `data_format="channels_first"`.
      pool_size: height and width of the window in pixels; one number for both.
      strides: step of the window in pixels; by default the window's size.
      padding: `"valid"` or `"same"`, in any case.
      data_format: `"channels_last"`/`"NHWC"` or `"channels_first"`/`"NCHW"`.

    Returns:
      The op `<layer>/output`.
    """
    return _pool("MaxPooling", tf.nn.max_pool, inputs, pool_size, strides, padding, data_format)


@layer_register(spelling=RENAMED["AvgPooling"])
def AvgPooling(
    inputs: tf.Tensor,
    pool_size: IntPair,
    strides: Optional[IntPair] = None,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> tf.Tensor:
    """Takes the mean of each window of an image, ignoring padded pixels.

    The arguments are those of `MaxPooling`; the input must be floating.
    """
    return _pool("AvgPooling", tf.nn.avg_pool, inputs, pool_size, strides, padding, data_format)


@layer_register(spelling=RENAMED["MaxPooling"])
def MaxPooling3D(
    inputs: tf.Tensor,
    pool_size: IntPair,
    strides: Optional[IntPair] = None,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> tf.Tensor:
    """Takes the maximum of each window of a volume.

    The arguments are those of `MaxPooling`; the input is floating `[N, D, H, W, C]`, or
    `[N, C, D, H, W]`, and sizes are one number or three, (depth, height, width).
    """
    options = pool_size, strides, padding, data_format
    return _pool("MaxPooling3D", tf.nn.max_pool3d, inputs, *options, dims=3)


@layer_register(spelling=RENAMED["AvgPooling"])
def AvgPooling3D(
    inputs: tf.Tensor,
    pool_size: IntPair,
    strides: Optional[IntPair] = None,
    padding: str = "valid",
    data_format: str = "channels_last",
) -> tf.Tensor:
    """Takes the mean of each window of a volume, ignoring padding; see `MaxPooling3D`."""
    options = pool_size, strides, padding, data_format
    return _pool("AvgPooling3D", tf.nn.avg_pool3d, inputs, *options, dims=3)


@layer_register(spelling=RENAMED["GlobalAvgPooling"])
def GlobalAvgPooling(inputs: tf.Tensor, data_format: str = "channels_last") -> tf.Tensor:
    """Takes the mean of each channel over the whole image.

    Args:
      inputs: floating `[N, H, W, C]`, or `[N, C, H, W]` with `data_format="channels_first"`.
      data_format: `"channels_last"`/`"NHWC"` or `"channels_first"`/`"NCHW"`.

    Returns:
      The op `<layer>/output`, `[N, C]`.
    """
    inputs, data_format = check_image("GlobalAvgPooling", inputs, data_format)
    height_axis = data_format.index("H")
    mean = tf.reduce_mean(precise(inputs), [height_axis, height_axis + 1])
    return tf.identity(tf.cast(mean, inputs.dtype), name="output")


@layer_register(spelling=RENAMED["FixedUnPooling"])
def FixedUnPooling(
    inputs: tf.Tensor,
    shape: IntPair,
    unpool_mat: Any = None,
    data_format: str = "channels_last",
) -> tf.Tensor:
    """Replaces each pixel by the pixel times a fixed matrix (a Kronecker product).

    Args:
      inputs: floating `[N, H, W, C]`, or `[N, C, H, W]` with `data_format="channels_first"`.
      shape: height and width of the block in pixels; one number for both.
      unpool_mat: a matrix of this shape; by default 1 at the top left and 0 elsewhere.
      data_format: `"channels_last"`/`"NHWC"` or `"channels_first"`/`"NCHW"`.

    Returns:
      The op `<layer>/output`, larger by `shape`.
    """
    data_format = axis_order(data_format)
    inputs = tf.convert_to_tensor(inputs)
    block = check_sizes("FixedUnPooling", "shape", shape)
    matrix = _unpool_matrix(unpool_mat, block, inputs.dtype.base_dtype)
    height_axis = data_format.index("H")
    # [.., H, W, ..] -> [.., H, 1, W, 1, ..], broadcast with the matrix.
    spread = tf.expand_dims(tf.expand_dims(inputs, height_axis + 1), height_axis + 3)
    trailing = [1] * (3 - (height_axis + 1))
    filled = spread * tf.reshape(matrix, [block[0], 1, block[1], *trailing])
    grown = StaticDynamicShape(inputs)
    grown.apply(height_axis, lambda size: size * block[0])
    grown.apply(height_axis + 1, lambda size: size * block[1])
    output = tf.reshape(filled, grown.get_dynamic(), name="output")
    output.set_shape(grown.get_static())
    return output


@layer_register(spelling=RENAMED["BilinearUpSample"])
def BilinearUpSample(inputs: tf.Tensor, shape: int) -> tf.Tensor:
    """Enlarges images by bilinear interpolation between the centres of pixels.

    Beyond the outermost centres the image continues with its border.

    Args:
      inputs: floating `[N, H, W, C]`.
      shape: the factor, a whole number.

    Returns:
      The op `<layer>/output`, `[N, H * shape, W * shape, C]`.
    """
    inputs, _ = check_image("BilinearUpSample", inputs, "NHWC")
    factor = as_count("BilinearUpSample", "shape", shape)
    grown = StaticDynamicShape(inputs)
    for axis in (1, 2):
        grown.apply(axis, lambda size: size * factor)
    enlarged = tf.image.resize_bilinear(inputs, grown.get_dynamic()[1:3], half_pixel_centers=True)
    enlarged.set_shape(grown.get_static())
    return tf.identity(tf.cast(enlarged, inputs.dtype), name="output")


@layer_register()
def ImageSample(inputs: Sequence[Any], borderMode: str = "repeat") -> tf.Tensor:
    """Reads images between their pixels, by bilinear interpolation.

    There are gradients with respect to the images and the coordinates.

    Reference: Jaderberg et al., "Spatial Transformer Networks", 2015.

    Args:
      inputs: two tensors: floating images `[N, H, W, C]`; float32 coordinates `[N, H', W', 2]`,
        (y, x) in pixels, where (0, 0) is the centre of the pixel at the top left.
      borderMode: the value at coordinates beyond the centres of the outermost pixels: `"repeat"`
        takes the nearest point of the image, `"constant"` is zero.

    Returns:
      The op `<layer>/output`, `[N, H', W', C]`, of the dtype of the images.
    """
    if borderMode not in _BORDERS:
        raise ValueError(f"ImageSample: borderMode must be one of {_BORDERS}, got {borderMode!r}.")
    images, _ = check_image("ImageSample", inputs[0], "NHWC")
    coordinates = tf.convert_to_tensor(inputs[1])
    size = tf.cast(tf.shape(images)[1:3], coordinates.dtype)
    nearest = tf.minimum(tf.maximum(coordinates, 0.0), size - 1.0)
    corner = tf.floor(nearest)
    # Weights of the pixels below and to the right of the corner; no gradient flows through floor.
    below, right = tf.split(tf.cast(nearest - corner, images.dtype), 2, axis=3)
    first = tf.cast(corner, tf.int32)
    last = tf.minimum(first + 1, tf.shape(images)[1:3] - 1)
    (top, left), (bottom, beside) = tf.unstack(first, axis=3), tf.unstack(last, axis=3)
    upper = (1 - right) * _pixels(images, top, left) + right * _pixels(images, top, beside)
    lower = (1 - right) * _pixels(images, bottom, left) + right * _pixels(images, bottom, beside)
    sampled = (1 - below) * upper + below * lower
    if borderMode == "constant":
        inside = tf.reduce_all(tf.equal(nearest, coordinates), axis=3, keepdims=True)
        sampled = sampled * tf.cast(inside, sampled.dtype)
    return tf.identity(sampled, name="output")


def _pool(
    layer_name: str,
    pool: Callable[..., tf.Tensor],
    inputs: Any,
    pool_size: IntPair,
    strides: Optional[IntPair],
    padding: str,
    data_format: str,
    dims: int = 2,
) -> tf.Tensor:
    data_format = axis_order(data_format, dims=dims)
    window = check_sizes(layer_name, "pool_size", pool_size, dims)
    step = window if strides is None else check_sizes(layer_name, "strides", strides, dims)
    return pool(
        inputs,
        per_axis(window, data_format),
        per_axis(step, data_format),
        padding.upper(),
        data_format=data_format,
        name="output",
    )


def _unpool_matrix(unpool_mat: Any, block: Any, dtype: tf.DType) -> tf.Tensor:
    if unpool_mat is None:
        return tf.reshape(tf.one_hot(0, block[0] * block[1], dtype=dtype), block)
    matrix = tf.cast(tf.convert_to_tensor(unpool_mat), dtype)
    matrix.set_shape(block)
    return matrix


def _pixels(images: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Returns the pixels of each image at its own rows and columns, int32 `[N, H', W']`."""
    return tf.gather_nd(images, tf.stack([rows, columns], axis=3), batch_dims=1)
