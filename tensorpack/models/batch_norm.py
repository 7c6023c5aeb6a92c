"""Batch normalization, with moving averages of the statistics for inference."""

from typing import Any, List, NamedTuple, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import get_current_tower_context, in_main_training_tower
from tensorpack.utils.argtools import get_data_format

from ._affine import Affine, get_affine
from ._checks import channel_axis, check_channels, check_floating
from ._legacy_names import RENAMED
from .registry import layer_register

__all__ = ["BatchNorm"]

_EMA_UPDATES = ("default", "collection", "internal", "skip")


class _Statistics(NamedTuple):
    mean: Any
    variance: Any


@layer_register(log_shape=False, spelling=RENAMED["BatchNorm"])
def BatchNorm(
    inputs: tf.Tensor,
    training: Optional[bool] = None,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    scale: bool = True,
    center: bool = True,
    gamma_initializer: Any = None,
    data_format: str = "channels_last",
    *,
    axis: Optional[int] = None,
    beta_initializer: Any = None,
    ema_update: str = "default",
) -> tf.Tensor:
    """Normalizes each channel to mean 0 and variance 1, then scales by `gamma` and adds `beta`.

    Uses the statistics of the batch in a training tower, and their moving averages elsewhere.
    Variables: `beta`, `gamma` `[C]`; not trainable: `mean/EMA` (0 at first), `variance/EMA` (1 at
    first) `[C]`.

    Reference: Ioffe and Szegedy, "Batch Normalization", 2015.

    Args:
      inputs: float32 or float16, `[N, C]`, `[N, H, W, C]`, or `[N, C, H, W]`; C must be known.
      training: whether to use the statistics of the batch; by default only in training towers.
      momentum: of the moving averages, per update.
      epsilon: added to the variance; TensorFlow uses at least 1.001e-5.
      scale: whether to use `gamma`.
      center: whether to use `beta`.
      gamma_initializer: an initializer or a number; ones by default.
      data_format: of images, `"channels_last"`/`"NHWC"` or `"channels_first"`/`"NCHW"`.
      axis: the axis of the channels, instead of `data_format`.
      beta_initializer: zeros by default.
      ema_update: how the averages are updated, in the main training tower: `"collection"` (the
        default): by an op in `UPDATE_OPS`, which the callback RunUpdateOps runs; `"internal"`:
        whenever the output is computed; `"skip"`: not at all.

    Returns:
      The op `<layer>/output`, like `inputs`, with the `.variables` `mean`, `variance`, `beta`,
      `gamma`.

    Raises:
      ValueError: the input is not such a tensor, or an option is out of range.
    """
    if ema_update not in _EMA_UPDATES:
        raise ValueError(
            f"BatchNorm: ema_update must be one of {_EMA_UPDATES}, got {ema_update!r}."
        )
    images, data_format = _as_images(inputs, data_format, axis)
    channels = images.shape.as_list()[channel_axis(data_format)]
    dtype = images.dtype
    affine = get_affine(channels, dtype, center, scale, beta_initializer, gamma_initializer)
    averages = _get_averages(channels)
    if training is None:
        tower = get_current_tower_context()
        training = tower is not None and tower.is_training
    used = _Statistics(None, None) if training else averages
    normalized, batch = _normalize(images, used, affine, epsilon, data_format)
    if training and ema_update != "skip" and in_main_training_tower():
        updates = _update(averages, batch, momentum)
        if ema_update == "internal":
            with tf.control_dependencies(updates):
                normalized = tf.identity(normalized)
        else:
            for update in updates:
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    if inputs.shape.ndims == 2:
        normalized = tf.squeeze(normalized, [1, 2])
    output = tf.identity(normalized, name="output")
    output.variables = affine.as_variables()
    output.variables.mean, output.variables.variance = averages
    return output


def _as_images(inputs: Any, data_format: str, axis: Optional[int]) -> Any:
    """Returns the input as a tensor of four dimensions, and its data format."""
    data_format = get_data_format(data_format)
    tensor = check_floating("BatchNorm", tf.convert_to_tensor(inputs))
    rank = tensor.shape.ndims
    if rank not in (2, 4):
        raise ValueError(
            f"BatchNorm needs 2 or 4 dimensions, got {tensor.name} with shape {tensor.shape}."
        )
    if axis is not None:
        if axis not in ((1, -1) if rank == 2 else (1, 3, -1)):
            raise ValueError(f"BatchNorm: axis must be 1 or the last one, got {axis!r}.")
        data_format = "NCHW" if axis == 1 else "NHWC"
    check_channels("BatchNorm", tensor, 1 if data_format == "NCHW" else -1)
    if rank == 2:
        tensor, data_format = tf.expand_dims(tf.expand_dims(tensor, 1), 1), "NHWC"
    return tensor, data_format


def _get_averages(channels: int) -> _Statistics:
    collections = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]

    def get(name: str, initializer: Any) -> Any:
        return tf.get_variable(
            name, [channels], initializer=initializer, trainable=False, collections=collections
        )

    # The variance starts at 1, so that an untrained model does not divide by epsilon alone.
    return _Statistics(
        get("mean/EMA", tf.zeros_initializer()), get("variance/EMA", tf.ones_initializer())
    )


def _normalize(
    images: tf.Tensor, statistics: _Statistics, affine: Affine, epsilon: float, data_format: str
) -> Any:
    """Returns the normalized images, and the statistics used: by default those of the batch."""
    channels = images.shape.as_list()[channel_axis(data_format)]
    normalized, mean, variance = tf.nn.fused_batch_norm(
        images,
        tf.ones([channels]) if affine.gamma is None else affine.gamma,
        tf.zeros([channels]) if affine.beta is None else affine.beta,
        mean=statistics.mean,
        variance=statistics.variance,
        epsilon=epsilon,
        data_format=data_format,
        is_training=statistics.mean is None,
    )
    return normalized, _Statistics(mean, variance)


def _update(averages: _Statistics, batch: _Statistics, momentum: float) -> List[tf.Operation]:
    return [
        tf.assign_sub(average, (average - new) * (1 - momentum)).op
        for average, new in zip(averages, batch)
    ]
