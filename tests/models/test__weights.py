"""The op `<layer>/output`, and the loss of its regularizer."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    BatchNorm,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    DepthwiseConv2D,
    FullyConnected,
    l2_regularizer,
)

from .tools import run


def build(activation, name="fc"):
    return FullyConnected(name, tf.ones([2, 3]), 4, activation=activation)


@pytest.mark.parametrize(
    "activation",
    [
        None,
        tf.nn.relu,
        lambda x, **options: tf.nn.relu(x, **options),
        lambda x, *, name: tf.nn.relu(x, name=name),
        lambda x: x,
    ],
)
def test_the_output_has_its_name_with_any_activation(activation):
    assert build(activation).op.name == "fc/output"


def test_a_name_scope_and_a_second_use():
    with tf.name_scope("tower0"):
        assert build(tf.nn.relu).op.name == "tower0/fc/output"
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        assert build(tf.nn.relu).op.name == "fc/output"
        assert build(tf.nn.relu).op.name == "fc_1/output"


def test_an_activation_may_be_a_layer_of_the_name_or_give_it_to_something_else():
    norm = build(lambda x, name: BatchNorm(name, x), "a")
    assert norm.op.name == "a/output_1" and norm.op.type == "Identity"
    assert [each.op.name for each in tf.global_variables("a/output/")][:2] == [
        "a/output/beta",
        "a/output/gamma",
    ]
    assert norm.variables.W.op.name == "a/W"
    twice = build(lambda x, name: tf.nn.relu(x, name=name) * 2, "b")
    assert twice.op.name == "b/output_1" and twice.op.inputs[0].op.name == "b/mul"


def test_an_activation_may_be_a_name_of_tf_nn():
    assert build("relu").op.type == "Relu"


LAYERS = [
    (FullyConnected, [3], {"units": 2}),
    (Conv2D, [1, 1, 3], {"filters": 2, "kernel_size": 1}),
    (Conv2DTranspose, [1, 1, 3], {"filters": 2, "kernel_size": 1}),
    (Conv3D, [1, 1, 1, 3], {"filters": 2, "kernel_size": 1}),
    (DepthwiseConv2D, [1, 1, 3], {"kernel_size": 1}),
]


@pytest.mark.parametrize("layer, shape, options", LAYERS)
def test_the_loss_of_an_activity_is_a_mean_over_the_batch(layer, shape, options):
    size = tf.placeholder(tf.int32, [])
    x = tf.reshape(tf.ones(tf.stack([size, 3])), [-1, *shape])
    ones = tf.ones_initializer()
    options = {"kernel_initializer": ones, "activity_regularizer": l2_regularizer(2.0), **options}
    output = layer("layer", x, **options)
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    expected = 3 if layer is DepthwiseConv2D else 2 * 3**2
    assert output.shape.as_list()[0] is None and loss.shape == []
    assert [run(loss, {size: n}) for n in (1, 8)] == [expected, expected]
    if layer is FullyConnected:
        assert run(loss, {size: 0}) == 0


def test_a_regularizer_may_have_no_loss():
    FullyConnected("fc", tf.ones([2, 3]), 4, activity_regularizer=lambda output: None)
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []
