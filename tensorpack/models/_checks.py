"""Checks of inputs and sizes that several layers share; they raise ValueError."""

from typing import Any, List, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import axis_order
from tensorpack.utils.checks import as_count

IntPair = Union[int, Sequence[int]]


def check_image(
    layer_name: str, inputs: Any, data_format: str, dims: int = 2
) -> Tuple[tf.Tensor, str]:
    """Returns images, or volumes, as a floating-point tensor; the format as `axis_order` does."""
    tensor = check_floating(layer_name, inputs)
    if tensor.shape.ndims != dims + 2:
        raise ValueError(f"{layer_name} needs a tensor of {dims + 2} dimensions, got {tensor}.")
    return tensor, axis_order(data_format, dims=dims)


def check_floating(layer_name: str, inputs: Any) -> tf.Tensor:
    """Returns the inputs as a tensor of a floating-point dtype."""
    tensor = tf.convert_to_tensor(inputs)
    if not tensor.dtype.base_dtype.is_floating:
        raise ValueError(
            f"{layer_name} needs floating-point numbers, got {tensor.name} of dtype "
            f"{tensor.dtype.base_dtype.name}. Convert it first, with tf.cast(x, tf.float32)."
        )
    return tensor


def channels_of(inputs: tf.Tensor, data_format: str) -> int:
    """Returns the number of channels of images or volumes, which must be known."""
    channels = inputs.shape.as_list()[data_format.index("C")]
    if channels is None:
        raise ValueError(f"The number of channels of {inputs} must be known: use set_shape().")
    return channels


def per_axis(sizes: Sequence[int], data_format: str) -> List[int]:
    """Returns sizes or strides of (height, width), or three, for all axes."""
    return [1, *sizes, 1] if data_format.endswith("C") else [1, 1, *sizes]


def check_sizes(layer_name: str, what: str, value: Any, dims: int = 2) -> List[int]:
    """Returns `[height, width]`, or three sizes, given as one positive whole number or all."""
    sizes = list(value) if isinstance(value, (list, tuple)) else [value] * dims
    return [as_count(layer_name, what, size) for size in sizes]
