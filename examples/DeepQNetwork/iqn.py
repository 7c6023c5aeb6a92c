"""A distribution of each return by its quantiles at any fraction, an input of the network.

Reference: Dabney et al., "Implicit Quantile Networks for Distributional Reinforcement Learning",
2018. Three things differ, for the sake of speed. The embedding of a fraction is multiplied with the
512 features that all fractions share; in the paper with the image before those, so that a layer of
4 million weights is computed for each fraction (16 times the work of all the others). Acting
takes the mean over the midpoints of intervals, where the paper draws as many fractions. And the
next actions of the targets are chosen, without double Q-learning, by the fractions whose values
become the targets, where the paper draws others.
"""

import math
from typing import Optional

import numpy as np
from draws import Draws
from heads import Outputs
from networks import Layer
from qr import QR, midpoints

from tensorpack.compat import tfv1 as tf
from tensorpack.models import FullyConnected

__all__ = ["COSINES", "IQN", "POLICY_SAMPLES", "embed"]

COSINES = 64
POLICY_SAMPLES = 32  # fractions whose mean is a value, of which actions are chosen


def embed(fractions: tf.Tensor, size: int) -> tf.Tensor:
    """Returns `relu(sum_i cos(pi i tau) w_ij + b_j)`, i from 0 to 63, float32 `[B, N, size]`.

    Variables: `embedding/W`, `embedding/b`.

    Args:
      fractions: tau, float32 `[B, N]`.
      size: of an embedding.
    """
    frequencies = tf.constant(math.pi * np.arange(COSINES, dtype=np.float32))
    cosines = tf.reshape(tf.cos(fractions[..., None] * frequencies), [-1, COSINES])
    embedded = FullyConnected("embedding", cosines, size, activation=tf.nn.relu)
    return tf.reshape(embedded, [-1, fractions.shape.as_list()[1], size])


class IQN(QR):
    """The network gives quantiles at the fractions that it is given: in training, random ones."""

    atoms = 64

    def outputs(self, x: tf.Tensor, layer: Layer, draws: Optional[Draws]) -> Outputs:
        if draws is None:
            fractions = tf.constant(midpoints(POLICY_SAMPLES)[None])
        else:
            fractions = draws.uniform([tf.shape(x)[0], self.atoms])
            fractions.set_shape([None, self.atoms])
        samples, size = fractions.shape.as_list()[1], x.shape.as_list()[1]
        mixed = tf.reshape(x[:, None, :] * embed(fractions, size), [-1, size])
        numbers = tf.reshape(
            self._action_numbers(mixed, layer, atoms=None), [-1, samples, self._num_actions]
        )
        return Outputs(tf.transpose(numbers, [0, 2, 1]), fractions)
