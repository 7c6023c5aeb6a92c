"""A distribution of each return over fixed values, the atoms.

Reference: Bellemare et al., "A Distributional Perspective on Reinforcement Learning", 2017.
"""

from typing import Tuple, Union

import numpy as np
from heads import Head, Outputs
from td import action_value

from tensorpack.compat import tfv1 as tf

__all__ = ["C51", "LIMIT", "project", "support"]

LIMIT = 10.0  # of a return: the atoms lie in [-LIMIT, LIMIT]


def support(atoms: int) -> np.ndarray:
    """Returns the atoms `z_i`, float32 `[N]`, evenly spaced."""
    return np.linspace(-LIMIT, LIMIT, atoms, dtype=np.float32)


def project(
    probabilities: tf.Tensor,
    reward: tf.Tensor,
    is_over: tf.Tensor,
    discount: Union[float, tf.Tensor],
    name: str = "project",
) -> tf.Tensor:
    """Returns the distribution of `reward + discount * Z`, on the same atoms; float32 `[B, N]`.

    The probability of a value between two atoms is divided among them (equation 7):

    `m_i = sum_j clip(1 - |clip(r + discount z_j, -LIMIT, LIMIT) - z_i| / dz, 0, 1) p_j`

    No gradient flows back.

    Args:
      probabilities: float32 `[B, N]`, p_j, of the next states.
      reward: float32 `[B]`.
      is_over: bool `[B]`, True where the episode ended, so that the return is the reward.
      discount: in [0, 1]; a number, or float32 `[B]`.
      name: of the name scope.
    """
    atoms = probabilities.shape.as_list()[1]
    z = support(atoms)
    with tf.name_scope(name):
        # What follows the end may be anything, NaN included.
        over = tf.broadcast_to(is_over[:, None], tf.shape(probabilities))
        p = tf.where_v2(over, 1.0 / atoms, probabilities)
        factor = tf.where_v2(is_over, 0.0, discount * tf.ones_like(reward))
        moved = tf.clip_by_value(reward[:, None] + factor[:, None] * z, -LIMIT, LIMIT)
        distance = tf.abs(moved[:, None, :] - z[:, None]) / (z[1] - z[0])  # [B, i, j]
        shares = tf.maximum(1.0 - distance, 0.0)
        return tf.stop_gradient(tf.reduce_sum(shares * p[:, None, :], 2))


class C51(Head):
    """The network gives the logits of the atoms; the loss is the cross entropy with the target."""

    atoms = 51

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.nn.softmax(numbers) * support(self.atoms), 2)

    def target(
        self,
        following: tf.Tensor,
        reward: tf.Tensor,
        is_over: tf.Tensor,
        discount: Union[float, tf.Tensor],
    ) -> tf.Tensor:
        return project(tf.nn.softmax(following), reward, is_over, discount)

    def losses(
        self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor
    ) -> Tuple[tf.Tensor, tf.Tensor]:
        logits = action_value(outputs.numbers, action)
        losses = -tf.reduce_sum(tf.stop_gradient(target) * tf.nn.log_softmax(logits), 1)
        return losses, losses
