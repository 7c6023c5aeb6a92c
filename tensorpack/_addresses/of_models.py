"""What `tensorpack.models._old_batch_norm` had in older versions."""

from typing import Any, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.models import BatchNorm
from tensorpack.models._normalization import Statistics, get_affine, get_averages, update

__all__ = ["BatchNorm", "get_bn_variables", "update_bn_ema"]


def get_bn_variables(
    n_out: int, use_scale: bool, use_bias: bool, gamma_init: Any
) -> Tuple[Any, Any, Any, Any]:
    """Returns beta, gamma, mean and variance, `[n_out]`, of the current variable scope; zeros and
    ones in place of those that are not used.
    """
    beta, gamma = get_affine(n_out, tf.float32, use_bias, use_scale, None, gamma_init)
    beta = tf.zeros([n_out], name="beta") if beta is None else beta
    gamma = tf.ones([n_out], name="gamma") if gamma is None else gamma
    return (beta, gamma, *get_averages(n_out))


def update_bn_ema(
    xn: Any,
    batch_mean: Any,
    batch_var: Any,
    moving_mean: Any,
    moving_var: Any,
    decay: float,
    internal_update: bool = True,
) -> tf.Tensor:
    """Returns `xn` as the op `output`, which moves the averages when it runs; without
    `internal_update` an op in `UPDATE_OPS` does.
    """
    averages, batch = Statistics(moving_mean, moving_var), Statistics(batch_mean, batch_var)
    how = "internal" if internal_update else "collection"
    return tf.identity(update(xn, averages, batch, decay, how), name="output")
