"""Checks of inputs and options that several layers share; they raise ValueError."""

from typing import Any, List, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count

IntPair = Union[int, Sequence[int]]


def check_image(layer_name: str, inputs: Any, data_format: str) -> tf.Tensor:
    """Returns the inputs as a floating-point tensor of four dimensions with known channels."""
    tensor = check_floating(layer_name, check_rank(layer_name, inputs))
    check_channels(layer_name, tensor, channel_axis(data_format))
    return tensor


def check_rank(layer_name: str, inputs: Any) -> tf.Tensor:
    """Returns the inputs as a tensor of four dimensions, or raises ValueError."""
    tensor = tf.convert_to_tensor(inputs)
    if tensor.shape.ndims != 4:
        raise ValueError(
            f"{layer_name} needs images, a tensor of 4 dimensions; "
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
    """Returns the axis of the channels in `NHWC` or `NCHW`."""
    return data_format.index("C")


def per_axis(pair: Sequence[int], data_format: str) -> List[int]:
    """Returns sizes or strides of (height, width) for all four axes."""
    return [1, *pair, 1] if data_format == "NHWC" else [1, 1, *pair]


def check_padding(layer_name: str, padding: Any) -> str:
    """Returns `SAME` or `VALID`; accepts any case."""
    if isinstance(padding, str) and padding.upper() in ("SAME", "VALID"):
        return padding.upper()
    raise ValueError(
        f"{layer_name}: padding must be 'SAME' or 'VALID', got {padding!r}. "
        "(Pass options after the sizes by name.)"
    )


def check_pair(layer_name: str, what: str, value: Any) -> List[int]:
    """Returns `[height, width]` of a size given as one positive whole number or two."""
    pair = list(value) if isinstance(value, (list, tuple)) else [value, value]
    if len(pair) != 2:
        raise ValueError(f"{layer_name}: {what} must be one number or two, got {value!r}.")
    return [as_count(layer_name, what, each) for each in pair]


def check_steps(layer_name: str, strides: Any, dilation_rate: Any) -> Tuple[List[int], List[int]]:
    """Returns strides and dilation, `[height, width]` each; only one of them may be above 1."""
    steps = check_pair(layer_name, "strides", strides)
    dilation = check_pair(layer_name, "dilation_rate", dilation_rate)
    if steps != [1, 1] and dilation != [1, 1]:
        raise ValueError(
            f"{layer_name}: strides and dilation_rate cannot both be above 1, got {steps} and "
            f"{dilation}."
        )
    return steps, dilation
