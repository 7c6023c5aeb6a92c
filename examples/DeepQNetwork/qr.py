"""A distribution of each return by its quantiles at fixed fractions.

Reference: Dabney et al., "Distributional Reinforcement Learning with Quantile Regression", 2018.
"""

from typing import Optional, Tuple

import numpy as np
from draws import Draws
from heads import Head, Outputs
from networks import Layer
from td import action_value

from tensorpack.compat import tfv1 as tf

__all__ = ["QR", "midpoints", "quantile_huber_losses"]


def midpoints(count: int) -> np.ndarray:
    """Returns the fractions `(2 i + 1) / 2N`, float32 `[N]`."""
    return ((np.arange(count) + 0.5) / count).astype(np.float32)


def quantile_huber_losses(
    quantiles: tf.Tensor, fractions: tf.Tensor, target: tf.Tensor, name: str = "quantile_huber"
) -> tf.Tensor:
    """Returns the loss of each example, float32 `[B]`; its gradient flows into the quantiles.

    `sum_i mean_j |tau_i - [u_ij < 0]| L(u_ij)`, with `u_ij = target_j - quantile_i` and the Huber
    loss `L(u) = u^2 / 2` up to |u| = 1, `|u| - 1/2` beyond (equation 10, with kappa = 1).

    Args:
      quantiles: float32 `[B, N]`.
      fractions: float32 `[B, N]` or `[1, N]`: tau_i, in [0, 1].
      target: float32 `[B, M]`, samples.
      name: of the name scope.
    """
    with tf.name_scope(name):
        u = tf.stop_gradient(target)[:, None, :] - quantiles[:, :, None]
        # L'(u) is clip(u), and L(u) = L'(u) (u - L'(u) / 2). With all but the first u held fixed
        # the gradient is the right one, and costs one product: N x M numbers are many.
        slope = tf.clip_by_value(u, -1.0, 1.0)
        weight = tf.abs(fractions[:, :, None] - tf.cast(u < 0, u.dtype))
        half, weighted = tf.stop_gradient(0.5 * slope), tf.stop_gradient(weight * slope)
        return tf.reduce_sum(tf.reduce_mean(weighted * (u - half), 2), 1)


class QR(Head):
    """The network gives the quantiles; a value is their mean."""

    atoms = 200

    def outputs(self, x: tf.Tensor, layer: Layer, draws: Optional[Draws]) -> Outputs:
        numbers = self._action_numbers(x, layer, self.atoms)
        return Outputs(numbers, tf.constant(midpoints(self.atoms)[None]))

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(numbers, 2)

    def losses(
        self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor
    ) -> Tuple[tf.Tensor, tf.Tensor]:
        quantiles = action_value(outputs.numbers, action)
        losses = quantile_huber_losses(quantiles, outputs.fractions, target)
        return losses, losses
