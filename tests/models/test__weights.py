"""The op `<layer>/output`."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import BatchNorm, FullyConnected


def build(activation, name="fc"):
    return FullyConnected(name, tf.ones([2, 3]), 4, activation=activation)


@pytest.mark.parametrize(
    "activation",
    [
        None,
        tf.identity,
        tf.nn.relu,
        tf.nn.elu,
        tf.sigmoid,
        lambda x: tf.nn.relu(x) * 2,
        lambda x, name=None: tf.nn.relu(x, name=name),
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


def test_an_activation_must_be_a_function_that_returns_a_tensor():
    with pytest.raises(TypeError, match="'relu'"):
        build("relu")
    with pytest.raises(TypeError, match="must return a tensor, it returned None"):
        build(lambda x: None, "fc1")
