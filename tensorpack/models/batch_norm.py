"""Batch normalization and renormalization, with moving averages of the statistics for inference."""

from typing import Any, Optional, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.collectives import has_other_terms
from tensorpack.utils.checks import as_count

from ._checks import channels_of
from ._legacy_names import RENAMED
from ._normalization import (
    Affine,
    Statistics,
    as_images,
    finish,
    get_affine,
    get_averages,
    in_training_tower,
    normalize,
    normalize_by_moments,
    normalize_over_towers,
    update,
)
from .registry import layer_register

_EMA_UPDATES = ("default", "collection", "internal", "skip")


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
    virtual_batch_size: Optional[int] = None,
    sync_statistics: Optional[str] = None,
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
        whenever the output is computed, also in a branch; `"skip"`: not at all.
      virtual_batch_size: if given, the batch is normalized in parts of this many examples, each by
        its own statistics; N must be a multiple of it. As in `tf.layers`, of k parts the first has
        the examples 0, k, 2k, ..., and the averages follow the mean of the parts' statistics.
      sync_statistics: `"nccl"` for the statistics of the batches of all training towers together,
        on whatever devices they are; `"horovod"` for those of all workers as well. K towers with
        batches of B examples then train as one with a batch of K x B. By default each tower uses
        its own batch.

    Returns:
      The op `<layer>/output`, like `inputs`, with the `.variables` `mean`, `variance`, `beta`,
      `gamma`.
    """
    _check_options(training, ema_update, sync_statistics, virtual_batch_size)
    training = in_training_tower() if training is None else bool(training)
    workers = sync_statistics == "horovod"
    images, data_format = as_images("BatchNorm", inputs, data_format, axis)
    channels = channels_of(images, data_format)
    affine = get_affine(channels, images.dtype, center, scale, beta_initializer, gamma_initializer)
    averages = get_averages(channels)
    if training and virtual_batch_size is not None:
        size = as_count("BatchNorm", "virtual_batch_size", virtual_batch_size)
        normalized, batch = _normalize_in_parts(images, size, affine, epsilon, data_format)
    elif training and sync_statistics is not None and has_other_terms(workers):
        normalized, batch = normalize_over_towers(images, affine, epsilon, data_format, workers)
    else:
        used = None if training else averages
        normalized, batch = normalize(images, used, affine, epsilon, data_format)
    if training:
        normalized = update(normalized, averages, batch, momentum, ema_update)
    return finish(normalized, inputs, affine, averages)


@layer_register(log_shape=False, spelling=RENAMED["BatchRenorm"])
def BatchRenorm(
    inputs: tf.Tensor,
    rmax: Any,
    dmax: Any,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    scale: bool = True,
    center: bool = True,
    data_format: str = "channels_last",
    *,
    gamma_initializer: Any = None,
) -> tf.Tensor:
    """Normalizes like BatchNorm, and while training brings the result near that of inference.

    In a training tower the normalized batch is scaled by `r` and moved by `d`: within the limits,
    the result is what the moving averages give. No gradient flows through the two::

        r = clip(batch_deviation / average_deviation, 1 / rmax, rmax)
        d = clip((batch_mean - average_mean) / average_deviation, -dmax, dmax)

    Variables, the result, and arguments that are not listed are those of `BatchNorm`; the averages
    are updated by ops in `UPDATE_OPS`.

    Reference: Ioffe, "Batch Renormalization", 2017; the average deviation is the root of the moving
    average of the variance.

    Args:
      rmax: the limit of `r`, at least 1; a number, or a float32 scalar tensor for a schedule. With
        1, and a `dmax` of 0, this is BatchNorm.
      dmax: the limit of `d`, at least 0; likewise.
    """
    images, data_format = as_images("BatchRenorm", inputs, data_format)
    channels = channels_of(images, data_format)
    affine = get_affine(channels, images.dtype, center, scale, None, gamma_initializer)
    averages = get_averages(channels)
    if not in_training_tower():
        normalized, _ = normalize(images, averages, affine, epsilon, data_format)
        return finish(normalized, inputs, affine, averages)
    r, d = _corrections(images, averages, rmax, dmax, epsilon, data_format)
    gamma = r if affine.gamma is None else affine.gamma * r
    offset = d if affine.gamma is None else affine.gamma * d
    beta = offset if affine.beta is None else affine.beta + offset
    normalized, batch = normalize(images, None, Affine(beta, gamma), epsilon, data_format)
    normalized = update(normalized, averages, batch, momentum, read_in_training=True)
    return finish(normalized, inputs, affine, averages)


def _check_options(
    training: Any, ema_update: Any, sync_statistics: Any, virtual_batch_size: Any
) -> None:
    if ema_update not in _EMA_UPDATES:
        raise ValueError(
            f"BatchNorm: ema_update must be one of {_EMA_UPDATES}, got {ema_update!r}."
        )
    if not (training is None or isinstance(training, (bool, np.bool_))):
        raise TypeError(
            f"BatchNorm: training must be True, False or None, got {training!r}. The axis of the "
            "channels is passed by name: BatchNorm(name, inputs, axis=...)."
        )
    if sync_statistics not in (None, "nccl", "horovod"):
        raise ValueError(
            "BatchNorm: sync_statistics must be None, 'nccl' or 'horovod', got "
            f"{sync_statistics!r}."
        )
    if sync_statistics is not None and virtual_batch_size is not None:
        raise ValueError(
            "BatchNorm: sync_statistics joins the batches of the towers, and virtual_batch_size "
            "splits them: pass one of the two."
        )


def _normalize_in_parts(
    images: tf.Tensor, size: int, affine: Affine, epsilon: float, data_format: str
) -> Tuple[tf.Tensor, Statistics]:
    """Normalizes each part of the batch by itself; also returns the mean of their statistics."""
    static = images.shape.as_list()
    parts = tf.reshape(images, tf.concat([[size, -1], tf.shape(images)[1:]], 0))
    parts.set_shape([size, None, *static[1:]])
    axis = data_format.index("C") + 1
    shape = [static[axis - 1] if i == axis else 1 for i in range(5)]
    axes = [i for i in range(5) if i not in (1, axis)]
    normalized, *moments = normalize_by_moments(parts, axes, affine, shape, epsilon)
    normalized = tf.reshape(normalized, tf.shape(images))
    normalized.set_shape(static)
    means = [tf.reshape(tf.reduce_mean(moment, 1), [static[axis - 1]]) for moment in moments]
    return normalized, Statistics(*means)


def _corrections(
    images: tf.Tensor, averages: Statistics, rmax: Any, dmax: Any, epsilon: float, data_format: str
) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns `r` and `d`, `[C]`, as constants to the gradient."""
    axes = [i for i in range(4) if i != data_format.index("C")]
    mean, variance = tf.nn.moments(tf.cast(images, averages.mean.dtype.base_dtype), axes)
    deviation = tf.sqrt(averages.variance + epsilon)
    r = tf.sqrt(variance + epsilon) / deviation
    d = (mean - averages.mean) / deviation
    r = tf.minimum(tf.maximum(r, 1 / rmax), rmax)
    d = tf.minimum(tf.maximum(d, -dmax), dmax)
    return tf.stop_gradient(r), tf.stop_gradient(d)
