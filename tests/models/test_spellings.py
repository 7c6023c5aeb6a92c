"""Layers in the spelling of 2017, and in the later one."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    AvgPooling,
    BatchNorm,
    BatchRenorm,
    Conv2D,
    Conv3D,
    DepthwiseConv2D,
    Dropout,
    FullyConnected,
    InstanceNorm,
    LayerNorm,
    MaxPooling,
)

from .tools import graph_of

ONES, TWO, RELU = tf.ones_initializer(), tf.constant_initializer(2.0), tf.nn.relu
OLD = {"W_init": ONES, "b_init": ONES, "nl": RELU}
LATER = {"kernel_initializer": ONES, "bias_initializer": ONES, "activation": RELU}
IMAGE, VECTOR = [1, 9, 9, 2], [4, 3]


def by(*args, **kwargs):
    return args, kwargs


@pytest.mark.parametrize(
    "layer, shape, old, later",
    [
        (
            Conv2D,
            IMAGE,
            by(8, 3, "VALID", 2, data_format="NHWC", **OLD),
            by(8, 3, padding="valid", strides=(2, 2), data_format="channels_last", **LATER),
        ),
        (
            Conv2D,
            IMAGE,
            by(out_channel=8, kernel_shape=[3, 1], stride=(2, 1), use_bias=False),
            by(filters=8, kernel_size=(3, 1), strides=[2, 1], use_bias=False),
        ),
        (
            Conv3D,
            [1, 3, 3, 3, 2],
            by(out_channel=4, kernel_shape=1, **OLD),
            by(4, 1, **LATER),
        ),
        (
            DepthwiseConv2D,
            IMAGE,
            by(kernel_shape=3, stride=2, **OLD),
            by(3, strides=(2, 2), **LATER),
        ),
        (FullyConnected, VECTOR, by(out_dim=4, **OLD), by(4, ONES, ONES, RELU, True)),
        (FullyConnected, VECTOR, by(out_dim=4, **OLD), by(units=4, **LATER)),
        *[
            (layer, IMAGE, by(shape=[3, 2], stride=2, padding="SAME"), later)
            for layer in (MaxPooling, AvgPooling)
            for later in (by(pool_size=(3, 2), strides=2, padding="same"), by((3, 2), 2, "same"))
        ],
        (
            BatchNorm,
            VECTOR,
            by(use_local_stat=True, decay=0.8, use_scale=False, gamma_init=2.0),
            by(training=True, momentum=0.8, scale=False, gamma_initializer=2.0),
        ),
        (
            BatchNorm,
            VECTOR,
            by(False, 0.8, 1e-3, True, False, 2.0),
            by(epsilon=1e-3, momentum=0.8, center=False, gamma_initializer=TWO),
        ),
        (
            BatchRenorm,
            VECTOR,
            by(3, 5, 0.8, 1e-3, False, True, "NHWC"),
            by(rmax=3, dmax=5, momentum=0.8, epsilon=1e-3, scale=False),
        ),
        (LayerNorm, VECTOR, by(1e-3, use_bias=False), by(epsilon=1e-3, center=False)),
        (InstanceNorm, IMAGE, by(1e-3, "NHWC", True), by(epsilon=1e-3)),
        (Dropout, VECTOR, by(0.75, is_training=True), by(rate=0.25, training=True)),
        (Dropout, VECTOR, by(is_training=True), by(keep_prob=0.5, training=True)),
    ],
)
def test_both_spellings_build_the_same_graph(layer, shape, old, later):
    def graph(args, kwargs):
        return graph_of(lambda: layer("layer", tf.zeros(shape), *args, **kwargs))

    assert graph(*old) == graph(*later)


@pytest.mark.parametrize(
    "layer, shape, options, message",
    [
        (Conv2D, [None, 4, 4], {"filters": 4, "kernel_size": 3}, "Conv2D needs .* of 4 dimensions"),
        (Conv3D, [None, 4, 4, 3], {"filters": 4, "kernel_size": 3}, "of 5 dimensions"),
        (Conv2D, [None, 4, 4, None], {"filters": 4, "kernel_size": 3}, "number of channels"),
        (Conv2D, [None, 4, 4, 3], {"filters": 4.5, "kernel_size": 3}, "filters must be a whole"),
        (BatchNorm, [None, 3, 3], {}, "2 or 4 dimensions"),
        (BatchNorm, [None, 3], {"axis": 2}, "axis must be"),
        (BatchNorm, [None, 3], {"ema_update": "never"}, "ema_update must be one of"),
    ],
)
def test_inputs_and_options_that_a_layer_cannot_take(layer, shape, options, message):
    with pytest.raises(ValueError, match=message):
        layer("layer", tf.placeholder(tf.float32, shape), **options)
