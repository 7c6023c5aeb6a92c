"""The networks, from images to features: functions in `NETWORKS`, whose keys `--network` takes.

Imports nothing that is slow, since the command line uses it: `tp` loads TensorFlow on first use.
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator

import tensorpack as tp

Layer = Callable[..., Any]  # FullyConnected, or one that is called alike


def network_2017(image: Any, layer: Layer) -> Any:
    """Returns the features of padded convolutions with PReLU."""

    def leaky_relu(x: Any, name: str = "output") -> Any:
        return tp.LeakyReLU(x, 0.01, name=name)

    x = _convolutions(image, "same", tp.PReLU.symbolic_function)
    return layer("fc0", x, 512, activation=leaky_relu)


def nature(image: Any, layer: Layer) -> Any:
    """Mnih et al., "Human-level control through deep reinforcement learning", 2015."""
    relu = tp.tfv1.nn.relu
    return layer("fc0", _convolutions(image, "valid", relu), 512, activation=relu)


def dopamine(image: Any, layer: Layer) -> Any:
    """Castro et al., "Dopamine", 2018."""
    relu = tp.tfv1.nn.relu
    return layer("fc0", _convolutions(image, "same", relu), 512, activation=relu)


# Name -> a function of images, float32 `[B, H, W, history]` in [0, 255], and of what makes fully
# connected layers, noisy ones with `--noisy`. It returns the features, float32 `[B, D]`.
NETWORKS: Dict[str, Callable[[Any, Layer], Any]] = {
    "2017": network_2017,
    "nature": nature,
    "dopamine": dopamine,
}


@contextmanager
def initialized_as(network: str, learns: str) -> Iterator[None]:
    """Lets all layers in the block begin as those of this network; for both, see `Algorithm`."""
    initializer = None  # the layers' own
    if network == "dopamine" and learns != "values":  # as Dopamine's agents of distributions
        initializer = tp.tfv1.variance_scaling_initializer(3**-0.5, "fan_in", "uniform")
    elif network in ("nature", "dopamine"):  # Mnih et al. do not say how theirs begin
        initializer = tp.tfv1.glorot_uniform_initializer()
    with tp.argscope([tp.Conv2D, tp.FullyConnected], kernel_initializer=initializer):
        yield


def _convolutions(image: Any, padding: str, activation: Callable[..., Any]) -> Any:
    with tp.argscope(tp.Conv2D, activation=activation, padding=padding):
        with tp.remap_variables(_for_bytes):
            x = tp.Conv2D("conv0", image, 32, 8, strides=4)
        x = tp.Conv2D("conv1", x, 64, 4, strides=2)
        return tp.Conv2D("conv2", x, 64, 3)


def _for_bytes(variable: Any) -> Any:
    """Scales the kernel of a convolution for inputs in [0, 255] instead of [0, 1]."""
    # It has a few thousand numbers to divide; the images have a few million.
    return variable / 255.0 if variable.shape.ndims == 4 else variable
