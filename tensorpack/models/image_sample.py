"""Bilinear sampling of images at given coordinates, as in a spatial transformer."""

from typing import Any, Sequence

from tensorpack.compat import tfv1 as tf

from ._checks import check_floating, check_rank
from .registry import layer_register

_BORDERS = ("repeat", "constant")


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
    images, coordinates = _check_inputs(inputs)
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


def _check_inputs(inputs: Any) -> Any:
    if not isinstance(inputs, (list, tuple)) or len(inputs) != 2:
        raise ValueError(f"ImageSample needs [images, coordinates], two tensors; got {inputs!r}.")
    images = check_floating("ImageSample", check_rank("ImageSample", inputs[0]))
    coordinates = check_floating("ImageSample", tf.convert_to_tensor(inputs[1]))
    if coordinates.shape.ndims != 4 or coordinates.shape.as_list()[3] != 2:
        raise ValueError(
            "ImageSample needs coordinates of shape [N, H', W', 2], (y, x) for each pixel of the "
            f"result; got {coordinates.name} with shape {coordinates.shape}."
        )
    return images, coordinates


def _pixels(images: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Returns the pixels of each image at its own rows and columns, int32 `[N, H', W']`."""
    return tf.gather_nd(images, tf.stack([rows, columns], axis=3), batch_dims=1)
