"""Tests of argscope."""

import inspect
import types

import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.models import Conv2D, FullyConnected, MaxPooling, PReLU
from tensorpack.tfutils.argscope import (
    argscope,
    enable_argscope_for_function,
    enable_argscope_for_module,
    get_arg_scope,
)
from tensorpack.tfutils.tower import TowerContext


def op_type(**options):
    """Type of the output op of a small dense layer."""
    return FullyConnected("fc", tf.ones([1, 2]), 3, **options).op.type


def dense(x, units, scale=1, name=None):
    """Stands for a layer of someone else's."""
    return tf.fill([1, units], scale, name=name)


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
        with tf.Graph().as_default():
            assert get_arg_scope() == {}
    with pytest.raises(RuntimeError, match="inside"):
        with argscope(Conv2D, kernel_shape=3):
            get_arg_scope()["Conv2D"]["kernel_size"] = 5  # of a copy
            assert get_arg_scope() == {"Conv2D": {"kernel_size": 3}}
            raise RuntimeError("inside")
    assert get_arg_scope() == {}


def test_layers_without_a_scope_name_are_reached(session):
    with argscope(PReLU, init=0.5):
        alpha = PReLU(tf.zeros([1])).variables.alpha
        other = FullyConnected("fc", tf.ones([1, 2]), 3, activation=PReLU)
    names = {each.op.name: each for each in tf.global_variables()}
    assert session().run([alpha, names["fc/alpha"]]) == [0.5, 0.5]
    assert other.op.name == "fc/output"


@pytest.mark.parametrize(
    "layers, arguments, text",
    [
        (Conv2D, {"actvation": 0}, "actvation, which Conv2D does not take.*activation"),
        (Conv2D, {"nl": None, "activation": None}, "two names of the argument 'activation'"),
        ("Conv2D", {"name": "x"}, "needs layers"),
    ],
)
def test_layers_must_be_layers_that_take_the_arguments(layers, arguments, text):
    with pytest.raises(TypeError, match=text):
        with argscope(layers, **arguments):
            pass
    assert get_arg_scope() == {}


def test_a_function_takes_defaults_for_what_a_call_leaves_out(log_lines):
    enabled = enable_argscope_for_function(dense)
    assert (enabled.__name__, enabled.__doc__) == ("dense", dense.__doc__)
    assert enable_argscope_for_function(enabled) is enabled
    x = tf.zeros([5, 2])
    with argscope([enabled, FullyConnected], units=3), argscope(enabled, scale=7):
        assert get_arg_scope()["dense"] == {"units": 3, "scale": 7}
        with tf.variable_scope("a"):
            assert enabled(x, name="fc").shape.as_list() == [1, 3]
        assert enabled(x, 4).shape.as_list() == [1, 4]
        with TowerContext("towerp0"):
            enabled(x)
    assert enabled(x=x, units=2, scale=1.5).shape.as_list() == [1, 2]
    shapes = "a/fc input: [5, 2]|a/fc output: [1, 3]|dense input: [5, 2]|dense output: [1, 4]"
    shapes += "|dense input: [5, 2]|dense output: [1, 2]"
    assert "|".join(text for _, text in log_lines) == shapes


def test_a_function_and_what_decorates_it_have_the_same_defaults(log_lines):
    enabled = enable_argscope_for_function(dense, log_shape=False)
    with argscope(dense, units=2):
        assert enabled(tf.zeros([1, 1])).shape.as_list() == [1, 2]
        assert get_arg_scope() == {"dense": {"units": 2}}
    assert [level for level, _ in log_lines] == ["warn"]


def test_all_functions_of_a_module(log_lines):
    def by_others(x):
        raise AssertionError

    layers = types.ModuleType("layers")
    layers.dense, layers._private, layers.constant = dense, by_others, 5
    enable_argscope_for_module(layers, log_shape=False)
    assert (layers._private, layers.constant) == (by_others, 5)
    with argscope(layers.dense, units=3):
        assert layers.dense(tf.zeros([1, 1])).shape.as_list() == [1, 3]
    assert log_lines == []


@pytest.mark.skipif(is_tfv2(), reason="TensorFlow 2 has no tf.layers")
def test_the_layers_of_tensorflow_1():
    originals = dict(inspect.getmembers(tf.layers, inspect.isfunction))
    try:
        enable_argscope_for_module(tf.layers)
        with argscope([tf.layers.conv2d, tf.layers.dense], activation=tf.nn.relu, name="layer"):
            x = tf.layers.conv2d(tf.zeros([1, 4, 4, 1]), 2, 3, padding="same")
        assert (x.op.name, x.shape.as_list()) == ("layer/Relu", [1, 4, 4, 2])
    finally:
        for name, function in originals.items():
            setattr(tf.layers, name, function)
