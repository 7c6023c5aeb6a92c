"""Tests of argscope."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import Conv2D, Dropout, FullyConnected, MaxPooling, PReLU
from tensorpack.tfutils.argscope import argscope, get_arg_scope


def op_type(**options):
    """Type of the output op of a small dense layer."""
    return FullyConnected("fc", tf.ones([1, 2]), 3, **options).op.type


def test_defaults_are_filled_in():
    with argscope([Conv2D, FullyConnected], nl=tf.nn.relu, use_bias=False):
        assert op_type() == "Relu"
        x = Conv2D("conv", tf.ones([1, 4, 4, 1]), 2, 3)
    assert x.op.type == "Relu"
    assert [each.op.name for each in tf.trainable_variables()] == ["fc/W", "conv/W"]


@pytest.mark.parametrize("in_scope", ["nl", "activation"])
@pytest.mark.parametrize("in_call", ["nl", "activation"])
def test_the_call_wins_in_any_spelling(in_scope, in_call):
    with argscope(FullyConnected, **{in_scope: tf.nn.relu}):
        assert op_type(**{in_call: tf.nn.tanh}) == "Tanh"


def test_a_positional_argument_and_a_none_win():
    with argscope(MaxPooling, shape=2, stride=1), argscope(FullyConnected, activation=tf.nn.relu):
        assert MaxPooling("p", tf.zeros([1, 8, 8, 1]), 4).shape.as_list() == [1, 5, 5, 1]
        assert op_type(activation=None) == "Identity"


def test_scopes_nest_and_end():
    with argscope(FullyConnected, activation=tf.nn.relu, use_bias=False):
        with argscope([FullyConnected, Conv2D], use_bias=True):
            assert get_arg_scope() == {
                "FullyConnected": {"activation": tf.nn.relu, "use_bias": True},
                "Conv2D": {"use_bias": True},
            }
        assert get_arg_scope() == {"FullyConnected": {"activation": tf.nn.relu, "use_bias": False}}
    assert get_arg_scope() == {}


def test_what_get_arg_scope_returns_is_a_copy_and_an_exception_ends_the_scope():
    with pytest.raises(RuntimeError, match="inside"):
        with argscope(Conv2D, kernel_shape=3):
            get_arg_scope()["Conv2D"]["kernel_size"] = 5
            assert get_arg_scope() == {"Conv2D": {"kernel_size": 3}}
            raise RuntimeError("inside")
    assert get_arg_scope() == {}


def test_each_graph_has_its_own():
    with argscope(FullyConnected, activation=tf.nn.relu):
        with tf.Graph().as_default():
            assert get_arg_scope() == {}
            assert op_type() == "Identity"


def test_layers_without_a_scope_name_are_reached(session):
    with argscope(PReLU, init=0.5):
        alpha = PReLU(tf.zeros([1])).variables.alpha
        other = FullyConnected("fc", tf.ones([1, 2]), 3, activation=PReLU)
    names = {each.op.name: each for each in tf.global_variables()}
    assert session().run([alpha, names["fc/alpha"]]) == [0.5, 0.5]
    assert other.op.name == "fc/output"


def test_a_converted_argument():
    with argscope(Dropout, rate=0.25):
        assert get_arg_scope() == {"Dropout": {"keep_prob": 0.75}}


@pytest.mark.parametrize(
    "layers, arguments, text",
    [
        (Conv2D, {"actvation": 0}, "actvation, which Conv2D does not take.*activation"),
        ([Conv2D, FullyConnected], {"padding": 0}, "padding, which FullyConnected does not take"),
        (Conv2D, {"nl": None, "activation": None}, "'activation' and 'nl'"),
        (tf.nn.relu, {"name": "x"}, "needs layers"),
    ],
)
def test_layers_must_be_layers_that_take_the_arguments(layers, arguments, text):
    with pytest.raises(TypeError, match=text):
        with argscope(layers, **arguments):
            pass
    assert get_arg_scope() == {}
