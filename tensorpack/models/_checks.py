"""Checks of inputs and options that several layers share; they raise ValueError."""

from typing import Any, List, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.argtools import axis_order
from tensorpack.utils.checks import as_count

IntPair = Union[int, Sequence[int]]


def check_image(
    layer_name: str, inputs: Any, data_format: str, dims: int = 2
) -> Tuple[tf.Tensor, str]:
    """Returns images, or volumes, as a floating-point tensor with known channels, and the format as
    `axis_order` does.
    """
    data_format = axis_order(data_format, dims=dims)
    tensor = check_floating(layer_name, check_rank(layer_name, inputs, len(data_format)))
    check_channels(layer_name, tensor, channel_axis(data_format))
    return tensor, data_format


def check_rank(layer_name: str, inputs: Any, rank: int = 4) -> tf.Tensor:
    """Returns images (rank 4) or volumes (5) as a tensor."""
    tensor = tf.convert_to_tensor(inputs)
    if tensor.shape.ndims != rank:
        what = "images" if rank == 4 else "volumes"
        raise ValueError(
            f"{layer_name} needs {what}, a tensor of {rank} dimensions; "
            f"got {tensor.name} with shape {tensor.shape}."
        )
    return tensor


def check_channels(layer_name: str, tensor: tf.Tensor, axis: int) -> None:
    """Raises ValueError if the size of the tensor along the axis of the channels is unknown."""
    if tensor.shape.as_list()[axis] is None:
        raise ValueError(
            f"{layer_name} needs a known number of channels (axis {axis}); "
            f"got {tensor.name} with shape {tensor.shape}. Set it with set_shape()."
        )


def check_floating(layer_name: str, tensor: tf.Tensor) -> tf.Tensor:
    """Returns the tensor if its dtype is floating-point, or raises ValueError."""
    if not tensor.dtype.base_dtype.is_floating:
        raise ValueError(
            f"{layer_name} needs floating-point numbers, got {tensor.name} of dtype "
            f"{tensor.dtype.base_dtype.name}. Convert it first, with tf.cast(x, tf.float32)."
        )
    return tensor


def channel_axis(data_format: str) -> int:
    """Returns the axis of the channels in `NHWC`, `NCHW`, `NDHWC` or `NCDHW`."""
    return data_format.index("C")


def channels_of(inputs: tf.Tensor, data_format: str) -> int:
    """Returns the number of channels of images or volumes."""
    return inputs.shape.as_list()[channel_axis(data_format)]


def per_axis(sizes: Sequence[int], data_format: str) -> List[int]:
    """Returns sizes or strides of (height, width), or three, for all axes."""
    return [1, *sizes, 1] if data_format.endswith("C") else [1, 1, *sizes]


def check_sizes(layer_name: str, what: str, value: Any, dims: int = 2) -> List[int]:
    """Returns `[height, width]`, or three sizes, given as one positive whole number or all."""
    sizes = list(value) if isinstance(value, (list, tuple)) else [value] * dims
    return [as_count(layer_name, what, size) for size in sizes]
