"""What is around the networks: frames to images, numbers of each action, noisy layers and draws."""

import math
import sys
from typing import Any, Callable, List, Optional, Tuple

from networks import Layer

from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.models import FullyConnected
from tensorpack.utils.gpu import get_num_gpu

NOISE = 0.5  # of noisy layers at the start, times 1 / sqrt(inputs)
_DRAWS = 1000  # more than one pass of a network draws
_WORD = 4  # bytes that are moved as one number


def as_images(frames: tf.Tensor, history: int) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns the first `history` frames and the last ones, each as float32 `[B, H, W, history]`.

    Frames are stored one after the other, uint8 `[B, N, H, W]`, N known; convolutions need them as
    channels. The values are not scaled: they stay in [0, 255].

    Raises:
      ValueError: the frames have another shape, or N is less than `history`.
    """
    count = frames.shape.as_list()[1] if frames.shape.ndims == 4 else None
    if count is None or not 1 <= history <= count:
        raise ValueError(
            "as_images needs frames [B, N, H, W] with a known N >= "
            f"history={history}, got shape {frames.shape}."
        )
    with tf.name_scope("as_images"):
        if history == _WORD and _words_are_faster():
            planes = tf.unstack(frames, axis=1)
            return _as_words(planes[:history]), _as_words(planes[-history:])
        images = tf.cast(tf.transpose(frames, [0, 2, 3, 1]), tf.float32)
        return images[..., :history], images[..., -history:]


def _words_are_faster() -> bool:
    # A GPU transposes fast, a CPU does not. TensorFlow 1 casts too slowly for it to pay.
    return sys.byteorder == "little" and tf_version()[0] >= 2 and get_num_gpu() == 0


def _as_words(planes: List[tf.Tensor]) -> tf.Tensor:
    """Packs four frames into one, each pixel of which is a number of four bytes, lowest first."""
    first, second, third, last = planes
    # The sign is in the highest byte. Multiplications, because shifts are slower.
    bytes_of_word = [tf.cast(each, tf.int32) for each in [first, second, third]]
    bytes_of_word.append(tf.cast(tf.bitcast(last, tf.int8), tf.int32))
    shifted = [each * (1 << 8 * i) if i else each for i, each in enumerate(bytes_of_word)]
    return tf.cast(tf.bitcast(tf.add_n(shifted), tf.uint8), tf.float32)


def action_numbers(
    x: tf.Tensor, actions: int, atoms: Optional[int], dueling: bool, layer: Layer = FullyConnected
) -> tf.Tensor:
    """Returns numbers of each action, float32 `[B, actions, atoms]`; `[B, actions]` without atoms.

    A dueling network adds up a number of the state, V, and one of each action, A, of which the mean
    over the actions is subtracted: `V(s) + A(s, a) - mean_a A(s, a)`.

    Reference: Wang et al., "Dueling Network Architectures for Deep Reinforcement Learning", 2016.
    Here V and A share the features.

    Args:
      x: float32 `[B, D]`, the features.
      actions: how many there are.
      atoms: numbers of each action; None for one, without a dimension of its own.
      dueling: whether the network is a dueling one.
      layer: makes the layers.
    """

    def numbers(name: str, count: int) -> tf.Tensor:
        made = layer(name, x, count * (atoms or 1))
        return made if atoms is None else tf.reshape(made, [-1, count, atoms])

    if not dueling:
        return numbers("fct", actions)
    value, advantage = numbers("fctV", 1), numbers("fctA", actions)
    return value + advantage - tf.reduce_mean(advantage, 1, keepdims=True)


def float32_from_here(x: tf.Tensor) -> tf.Tensor:
    """Returns the same numbers; what is computed from them stays in float32.

    Where a run has `--precision bf16`, TensorFlow spreads bfloat16 along ops of float32. Values of
    5 would be known to 0.02 then, which is much for targets, and for policies of a temperature of
    0.03. The layers are where the time goes.
    """
    return tf.cast(tf.cast(x, tf.float64), tf.float32)


class Draws:
    """Tensors of random numbers that are a function of two numbers, and of the order of the calls.

    TensorFlow does not save where its other generators are.

    Args:
      number: integer scalar, a tensor; such as the number of the training step.
      stream: a second one, known; different for each use of the same `number`.
    """

    def __init__(self, number: Any, stream: int) -> None:
        self._number = tf.cast(number, tf.int64)
        self._next = stream * _DRAWS

    def uniform(self, shape: List[Any]) -> tf.Tensor:
        """Returns float32 in [0, 1)."""
        return tf.random.stateless_uniform(shape, self._seed())

    def normal(self, shape: List[Any]) -> tf.Tensor:
        """Returns float32 of a standard normal distribution."""
        return tf.random.stateless_normal(shape, self._seed())

    def _seed(self) -> tf.Tensor:
        self._next += 1
        return tf.stack([self._number, tf.constant(self._next, tf.int64)])


def noisy_layer(draws: Optional[Draws]) -> Callable[..., tf.Tensor]:
    """Returns a layer to use in place of `FullyConnected`, with factorised Gaussian noise.

    The network explores by itself, as much as it has learned to. Reference: Fortunato et al.,
    "Noisy Networks for Exploration", 2018.

    `y = (w + w' * e_in e_out^T)^T x + b + b' * e_out`, where `e = sign(z) sqrt(|z|)` of a standard
    normal z for each input and for each output. The products with the noise are taken of the
    vectors, `(w'^T (x * e_in) + b') * e_out`, so that there is no third matrix.

    The variables of the means are those of a `FullyConnected` of the same name; `NAME_sigma` has
    the deviations. `draws` gives the noise, one for all examples; None is for the means alone, as
    in evaluations.
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
            start = tf.constant_initializer(NOISE * limit)
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

    It is another one after each step of the training, and a resumed run has the same. A graph
    without a training has no steps.
    """
    step = tf.train.get_global_step()
    return tf.reduce_sum(tf.cast(state, tf.int64)) + (0 if step is None else step)


def _noise(draws: Draws, size: int) -> tf.Tensor:
    z = draws.normal([size])
    return tf.sign(z) * tf.sqrt(tf.abs(z))
