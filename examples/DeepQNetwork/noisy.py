"""Layers whose weights are noisy: the network explores by itself, as much as it has learned to.

Reference: Fortunato et al., "Noisy Networks for Exploration", 2018.
"""

import math
from typing import Any, Callable, Optional

from draws import Draws

from tensorpack.compat import tfv1 as tf
from tensorpack.models import FullyConnected
from tensorpack.utils.rng import SeedTree, streams_state

__all__ = ["SIGMA", "noise_number", "noisy_layer"]

SIGMA = 0.5  # of the noise at the start, times 1 / sqrt(inputs)


def noisy_layer(draws: Optional[Draws]) -> Callable[..., tf.Tensor]:
    """Returns a layer to use in place of `FullyConnected`, with factorised Gaussian noise.

    `y = (w + w' * e_in e_out^T)^T x + b + b' * e_out`, where `e = sign(z) sqrt(|z|)` of a standard
    normal z for each input and for each output. The products with the noise are taken of the
    vectors, `(w'^T (x * e_in) + b') * e_out`, so that there is no third matrix.

    The variables of the means are those of a `FullyConnected` of the same name; `NAME_sigma` has
    the deviations.

    Args:
      draws: gives the noise, one for all examples; None for the means alone, as in evaluations.
    """

    def layer(
        name: str, x: tf.Tensor, units: int, activation: Optional[Callable[..., Any]] = None
    ) -> tf.Tensor:
        x = tf.reshape(x, [-1, x.shape[1:].num_elements()])
        inputs = x.shape.as_list()[1]
        limit = 1 / math.sqrt(inputs)
        start = tf.random_uniform_initializer(-limit, limit)
        y = FullyConnected(name, x, units, kernel_initializer=start, bias_initializer=start)
        if draws is not None:
            start = tf.constant_initializer(SIGMA * limit)
            noisy_x = x * _noise(draws, inputs)
            sigma = FullyConnected(
                f"{name}_sigma", noisy_x, units, kernel_initializer=start, bias_initializer=start
            )
            # Minus, which is as good: TensorFlow 2.21 fuses a sum with a ReLU into a broken op.
            y -= sigma * _noise(draws, units)
        return y if activation is None else activation(y)

    return layer


def noise_number(state: tf.Tensor) -> tf.Tensor:
    """Returns the number of the noise to act with in these states, an integer scalar.

    In the graph of a training it is another one after each step, and a resumed run has the same.
    Elsewhere there are no steps, as in actors, which are not resumed: each call draws another one.
    """
    step = tf.train.get_global_step()
    if step is None:
        seed = SeedTree(streams_state()["seed"]).child("noise").integer()
        step = tf.random.uniform([], maxval=2**31, dtype=tf.int64, seed=seed)
    return tf.reduce_sum(tf.cast(state, tf.int64)) + step


def _noise(draws: Draws, size: int) -> tf.Tensor:
    z = draws.normal([size])
    return tf.sign(z) * tf.sqrt(tf.abs(z))
