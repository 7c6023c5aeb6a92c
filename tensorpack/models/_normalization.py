"""What normalizing layers share: `gamma` and `beta`, the formulas, and moving averages."""

import numbers
from typing import Any, List, NamedTuple, Optional, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.collectives import sum_over_towers
from tensorpack.tfutils.tower import get_current_tower_context, in_main_training_tower
from tensorpack.utils.argtools import axis_order

from ._checks import channels_of, check_floating
from .registry import VariableHolder

_LEAST_EPSILON = 1.001e-5  # what TensorFlow's fused op takes instead of a smaller one


class Affine(NamedTuple):
    """Offset and scale; None for one that is not used."""

    beta: Any
    gamma: Any

    def as_variables(self) -> VariableHolder:
        return VariableHolder(**{k: v for k, v in self._asdict().items() if v is not None})


def get_affine(
    channels: int,
    dtype: tf.DType,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
) -> Affine:
    """Gets the variables, `[channels]`, from the current variable scope; arguments as in BatchNorm.

    `dtype` is that of the input; float16 input has float32 variables.
    """
    if isinstance(gamma_initializer, numbers.Number):
        gamma_initializer = tf.constant_initializer(gamma_initializer)

    def get(name: str, initializer: Any) -> Any:
        return tf.get_variable(name, [channels], parameter_dtype(dtype), initializer)

    return Affine(
        get("beta", beta_initializer or tf.zeros_initializer()) if center else None,
        get("gamma", gamma_initializer or tf.ones_initializer()) if scale else None,
    )


def parameter_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype of statistics and parameters for an input of this dtype."""
    return dtype.base_dtype if dtype.base_dtype.size >= 4 else tf.float32


def normalize_by_moments(
    inputs: tf.Tensor, axes: List[int], affine: Affine, shape: List[int], epsilon: float
) -> Tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Normalizes to mean 0 and variance 1 over `axes`, then applies `gamma` and `beta`.

    Args:
      shape: that of `gamma` and `beta`, with 1 for the axes along which they are repeated.

    Returns:
      The result, of the dtype of the input; mean and variance, with 1 for each of the axes.
    """
    beta, gamma = (var if var is None else tf.reshape(var, shape) for var in affine)
    precise = tf.cast(inputs, parameter_dtype(inputs.dtype))
    mean, variance = tf.nn.moments(precise, axes, keep_dims=True)
    normalized = tf.nn.batch_normalization(precise, mean, variance, beta, gamma, epsilon)
    return tf.cast(normalized, inputs.dtype), mean, variance


class Statistics(NamedTuple):
    """One mean and one variance for each channel."""

    mean: Any
    variance: Any


def as_images(
    layer_name: str, inputs: Any, data_format: str, axis: Optional[int] = None
) -> Tuple[tf.Tensor, str]:
    """Returns the input as a tensor of four dimensions, and its data format."""
    data_format = axis_order(data_format)
    tensor = check_floating(layer_name, inputs)
    rank = tensor.shape.ndims
    if rank not in (2, 4):
        raise ValueError(
            f"{layer_name} needs 2 or 4 dimensions, got {tensor.name} with shape {tensor.shape}."
        )
    if axis is not None:
        if axis not in ((1, -1) if rank == 2 else (1, 3, -1)):
            raise ValueError(f"{layer_name}: axis must be 1 or the last one, got {axis!r}.")
        data_format = "NCHW" if axis == 1 else "NHWC"
    if rank == 2:
        tensor, data_format = tf.expand_dims(tf.expand_dims(tensor, 1), 1), "NHWC"
    return tensor, data_format


def in_training_tower() -> bool:
    """Returns whether the statistics of the batch are used by default."""
    tower = get_current_tower_context()
    return tower is not None and tower.is_training


def get_averages(channels: int) -> Statistics:
    """Gets the moving averages, `[channels]`, from the current variable scope."""
    collections = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]

    def get(name: str, initializer: Any) -> Any:
        return tf.get_variable(
            name, [channels], initializer=initializer, trainable=False, collections=collections
        )

    # The variance starts at 1, so that an untrained model does not divide by epsilon alone.
    return Statistics(
        get("mean/EMA", tf.zeros_initializer()), get("variance/EMA", tf.ones_initializer())
    )


def normalize(
    images: tf.Tensor,
    statistics: Optional[Statistics],
    affine: Affine,
    epsilon: float,
    data_format: str,
) -> Tuple[tf.Tensor, Statistics]:
    """Returns the normalized images, and the statistics used: for None, those of the batch."""
    channels = channels_of(images, data_format)
    normalized, mean, variance = tf.nn.fused_batch_norm(
        images,
        tf.ones([channels]) if affine.gamma is None else affine.gamma,
        tf.zeros([channels]) if affine.beta is None else affine.beta,
        mean=None if statistics is None else statistics.mean,
        variance=None if statistics is None else statistics.variance,
        epsilon=epsilon,
        data_format=data_format,
        is_training=statistics is None,
    )
    return normalized, Statistics(mean, variance)


def normalize_over_towers(
    images: tf.Tensor, affine: Affine, epsilon: float, data_format: str, workers: bool
) -> Tuple[tf.Tensor, Statistics]:
    """As `normalize` with the statistics of the batch, that of all towers (and workers) together.

    The variance is that around the common mean, in a second sum: the difference of two large
    numbers would lose digits.
    """
    axis = data_format.index("C")
    axes = [i for i in range(4) if i != axis]
    channels = images.shape.as_list()[axis]
    shape = [channels if i == axis else 1 for i in range(4)]
    precise = tf.cast(images, parameter_dtype(images.dtype))
    count = tf.cast(tf.size(images) // channels, precise.dtype)
    sums = sum_over_towers(tf.concat([tf.reduce_sum(precise, axes), [count]], 0), workers)
    count = sums[channels]
    mean = sums[:channels] / count
    around = precise - tf.reshape(mean, shape)
    variance = sum_over_towers(tf.reduce_sum(tf.square(around), axes), workers) / count
    factor = tf.rsqrt(variance + max(epsilon, _LEAST_EPSILON))
    if affine.gamma is not None:
        factor *= affine.gamma
    normalized = around * tf.reshape(factor, shape)
    if affine.beta is not None:
        normalized += tf.reshape(affine.beta, shape)
    unbiased = variance * count / tf.maximum(count - 1, 1)
    return tf.cast(normalized, images.dtype), Statistics(mean, unbiased)


def update(
    normalized: tf.Tensor,
    averages: Statistics,
    batch: Statistics,
    momentum: float,
    ema_update: str = "collection",
    read_in_training: bool = False,
) -> tf.Tensor:
    """Moves the averages in the main training tower, and in each that has averages of its own where
    the training reads them; returns `normalized`.
    """
    tower = get_current_tower_context()
    read = read_in_training and tower is not None and tower.keeps_updates
    if ema_update == "skip" or not (read or in_main_training_tower()):
        return normalized
    updates = [
        tf.assign_sub(average, (average - new) * (1 - momentum)).op
        for average, new in zip(averages, batch)
    ]
    if ema_update == "internal":
        with tf.control_dependencies(updates):
            return tf.identity(normalized)
    if hasattr(updates[0].graph, "outer_graph"):
        raise ValueError(
            f"{updates[0].name} is in a branch or a loop, whose ops a step cannot run alone: "
            'pass BatchNorm(ema_update="internal"), or build the layer outside.'
        )
    for op in updates:
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, op)
    return normalized


def finish(
    normalized: tf.Tensor, inputs: tf.Tensor, affine: Affine, averages: Statistics
) -> tf.Tensor:
    """Returns the op `output`, of the rank of the layer's inputs, with its `.variables`."""
    if inputs.shape.ndims == 2:
        normalized = tf.squeeze(normalized, [1, 2])
    output = tf.identity(normalized, name="output")
    output.variables = affine.as_variables()
    output.variables.mean, output.variables.variance = averages
    return output
