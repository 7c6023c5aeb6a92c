"""The layers of the networks: from images to features, and from those to numbers of each action."""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.models import Conv2D, FullyConnected, LeakyReLU, PReLU
from tensorpack.tfutils.argscope import argscope
from tensorpack.tfutils.varreplace import remap_variables

__all__ = ["Layer", "action_numbers", "features", "float32_from_here", "initialized_as"]

Layer = Callable[..., tf.Tensor]  # FullyConnected, or one that is called alike


class _Kind(NamedTuple):
    """What tells the networks apart; their layers have the same sizes."""

    padding: str  # of the convolutions
    activation: Callable[..., Any]  # of the convolutions
    last_activation: Callable[..., Any]  # of the features
    initializer: Any  # of all kernels; None: the layers' own


def _leaky_relu(x: tf.Tensor, name: str = "output") -> tf.Tensor:
    return LeakyReLU(x, 0.01, name=name)


_KINDS = {
    "2017": _Kind("same", PReLU.symbolic_function, _leaky_relu, None),
    # Mnih et al., "Human-level control through deep reinforcement learning", 2015, which does not
    # say how the layers begin: like those of Dopamine.
    "nature": _Kind("valid", tf.nn.relu, tf.nn.relu, tf.glorot_uniform_initializer()),
    # Castro et al., "Dopamine", 2018; see also `initialized_as`.
    "dopamine": _Kind("same", tf.nn.relu, tf.nn.relu, tf.glorot_uniform_initializer()),
}
# What Dopamine's agents begin with that learn distributions.
_FOR_DISTRIBUTIONS = tf.variance_scaling_initializer(3**-0.5, "fan_in", "uniform")


@contextmanager
def initialized_as(network: str, learns: str) -> Iterator[None]:
    """Lets all layers in the block begin as those of this network; for both, see `Algorithm`."""
    initializer = _KINDS[network].initializer
    if network == "dopamine" and learns != "values":
        initializer = _FOR_DISTRIBUTIONS
    with argscope([Conv2D, FullyConnected], kernel_initializer=initializer):
        yield


def features(image: tf.Tensor, network: str, layer: Layer = FullyConnected) -> tf.Tensor:
    """Returns what a network sees in images, float32 `[B, 512]`.

    Args:
      image: float32 `[B, H, W, C]`, in [0, 255].
      network: see `Algorithm`.
      layer: makes the last layer.
    """
    kind = _KINDS[network]
    with argscope(Conv2D, activation=kind.activation, padding=kind.padding):
        with remap_variables(_for_bytes):
            x = Conv2D("conv0", image, 32, 8, strides=4)
        x = Conv2D("conv1", x, 64, 4, strides=2)
        x = Conv2D("conv2", x, 64, 3)
    return layer("fc0", x, 512, activation=kind.last_activation)


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
    shape = [] if atoms is None else [atoms]
    width = atoms or 1

    def numbers(name: str, count: int) -> tf.Tensor:
        return layer(name, x, count * width)

    if not dueling:
        return _reshape(numbers("fct", actions), [actions, *shape])
    value = _reshape(numbers("fctV", 1), [1, *shape])
    advantage = _reshape(numbers("fctA", actions), [actions, *shape])
    return value + advantage - tf.reduce_mean(advantage, 1, keepdims=True)


def float32_from_here(x: tf.Tensor) -> tf.Tensor:
    """Returns the same numbers; what is computed from them stays in float32.

    Where a run has `--precision bf16`, TensorFlow spreads bfloat16 along ops of float32. Values of
    5 would be known to 0.02 then, which is much for targets, and for policies of a temperature of
    0.03. The layers are where the time goes.
    """
    return tf.cast(tf.cast(x, tf.float64), tf.float32)


def _reshape(x: tf.Tensor, shape: Any) -> tf.Tensor:
    return x if len(shape) == 1 else tf.reshape(x, [-1, *shape])


def _for_bytes(variable: Any) -> Any:
    """Scales the kernel of a convolution for inputs in [0, 255] instead of [0, 1]."""
    # It has a few thousand numbers to divide; the images have a few million.
    return variable / 255.0 if variable.shape.ndims == 4 else variable
