"""Tests of what makes a function a layer."""

import copy
import functools
import inspect
import pickle
import pydoc
from unittest import mock

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    Conv2D,
    Conv2DTranspose,
    Deconv2D,
    FullyConnected,
    LinearWrap,
    MaxPooling,
    PReLU,
    VariableHolder,
    disable_layer_logging,
    get_registered_layer,
    layer_register,
    registry,
)
from tensorpack.tfutils.argscope import argscope, enable_argscope_for_function
from tensorpack.tfutils.tower import TowerContext
from tensorpack.utils._tracebacks import notes_of


@pytest.fixture
def make_layer():
    """Registers layers for the time of one test."""
    with mock.patch.dict(registry.LAYERS):
        yield layer_register


def frames():
    return tf.placeholder(tf.float32, [None, 84, 84, 4])


def test_shapes_are_logged_as_in_the_seeds(lines):
    x = Conv2D("conv0", frames(), 32, 8, strides=4, activation=PReLU)
    x = MaxPooling("pool0", x, 2)
    FullyConnected("fc0", x, 512)
    assert lines == [
        "conv0 input: [None, 84, 84, 4]",
        "conv0 output: [None, 21, 21, 32]",
        "pool0 input: [None, 21, 21, 32]",
        "pool0 output: [None, 10, 10, 32]",
        "fc0 input: [None, 10, 10, 32]",
        "fc0 output: [None, 512]",
    ]


def test_each_scope_is_logged_once_for_each_graph_unless_disabled(lines):
    x = tf.zeros([2, 3])
    FullyConnected("fc", x, 4)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        FullyConnected("fc", x, 4)
    assert len(lines) == 2
    disable_layer_logging()
    FullyConnected("other", x, 4)
    assert len(lines) == 2
    with tf.Graph().as_default():
        FullyConnected("fc", tf.zeros([2, 3]), 4)
    assert len(lines) == 4


def test_only_the_main_training_tower_logs_though_a_predictor_may_come_first(lines):
    x = tf.zeros([2, 3])
    with TowerContext("towerp0", is_training=False, vs_name="p"):
        FullyConnected("fc", x, 4)
    assert lines == []
    with TowerContext("tower0", is_training=True, vs_name="tower0"):
        FullyConnected("fc", x, 4)
    assert lines == ["fc input: [2, 3]", "fc output: [2, 4]"], "without the tower's own scope"
    with TowerContext("tower1", is_training=True, index=1, vs_name="tower1"):
        FullyConnected("another", x, 4)
    assert len(lines) == 2


def test_a_layer_of_ones_own(make_layer):
    @make_layer(log_shape=True)
    def Scale(x, factor=2.0, nl=tf.identity):
        """Multiplies."""
        return nl(x * factor, name="output")

    x = tf.ones([2])
    assert Scale("s", x, 3.0, nl=tf.nn.relu).op.type == "Relu"
    assert Scale("t", x).op.name == "t/output"
    assert Scale.__name__ == "Scale" and Scale.__doc__ == "Multiplies."
    assert Scale.use_scope is True
    assert Scale.symbolic_function(x).op.name == "output"
    assert get_registered_layer("Scale") is Scale


def test_a_signature_has_the_scope_name_where_it_must_be_given(make_layer):
    @make_layer()
    def Scale(x, name="output", *, factor: float = 2.0) -> str:
        pass

    @make_layer(use_scope=None)
    def Shift(x, by):
        pass

    shown = ["(scope_name, /, x, name='output', *, factor: float = 2.0) -> str", "(x, by)"]
    assert [str(inspect.signature(layer)) for layer in (Scale, Shift)] == shown
    shown = pydoc.plain(pydoc.render_doc(Conv2D))
    assert "Conv2D(scope_name, inputs" in shown.replace("/, ", "") and "Convolves images" in shown


def test_a_layer_is_copied_and_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(Conv2D)) is Conv2D is copy.deepcopy(Conv2D)
    model = type("Model", (), {"layer": Conv2D})()
    assert model.layer is Conv2D


def renaming(function):
    """A wrapper of scripts, which has names of its own."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        kwargs = {{"width": "size"}.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return wrapper


def test_a_wrapper_of_a_script_decides_which_names_its_layer_takes(make_layer):
    @make_layer()
    @renaming
    def Repeat(x, size=1):
        return tf.tile(x, [size])

    x = tf.ones([2])
    assert Repeat("a", x, width=3).shape == Repeat("b", x, size=3).shape == [6]
    with argscope(Repeat, width=4):
        assert Repeat("c", x).shape == [8]
        with pytest.raises(TypeError, match="'height'"):
            Repeat("d", x, height=1)
    dense = enable_argscope_for_function(renaming(lambda x, size=1: tf.tile(x, [size])))
    with argscope(dense, width=5):
        assert dense(x).shape == [10]


def test_the_scope_name_is_asked_for():
    with pytest.raises(TypeError, match=r"Conv2D\(\) needs the name of its variable scope first"):
        Conv2D(frames(), 32, 3)


@pytest.mark.parametrize("inputs", [None, [1.0]])
def test_inputs_must_be_tensors_or_variables(inputs):
    with pytest.raises(ValueError, match="Invalid inputs to layer: FullyConnected"):
        FullyConnected("fc", inputs, 4)
    variable = tf.get_variable("v", [2, 3])
    assert FullyConnected("fc", variable, 4).shape.as_list() == [2, 4]


def test_a_name_can_be_taken_once_or_by_the_same_definition_again(make_layer):
    def define():
        def Again(x):
            return x

        return make_layer()(Again)

    define()
    second = define()
    assert get_registered_layer("Again") is second

    def Again(x):
        return x

    with pytest.raises(ValueError, match="'Again' is taken by .*define.*rename .*Again"):
        make_layer()(Again)


def test_a_script_may_define_a_layer_of_this_package_its_own_way(make_layer, capsys):
    @make_layer()
    def GroupNorm(x, group=32):
        return x * group

    assert get_registered_layer("GroupNorm") is GroupNorm
    wrap = LinearWrap(tf.ones([])).GroupNorm("gn", group=3)
    with tf.Session() as sess:
        assert sess.run(wrap()) == 3
    said = capsys.readouterr().out
    assert "LinearWrap.GroupNorm is " in said
    assert "not tensorpack.models.layer_norm.GroupNorm." in said


def test_lookup_by_name():
    assert get_registered_layer("Conv2D") is Conv2D
    assert get_registered_layer("Deconv2D") is Deconv2D is Conv2DTranspose
    assert get_registered_layer("conv2d") is None


def test_variable_holder():
    holder = VariableHolder(W=1, b=2)
    holder.c = 3
    assert (holder.W, holder.b, holder.c) == (1, 2, 3)
    assert holder.all() == [1, 2, 3]
    assert not hasattr(holder, "d")


def test_an_argument_that_is_mistyped_gets_the_nearest_name():
    said = r"Conv2D\(\) got kernel_shap, which Conv2D does not take\. Did you mean kernel_shape"
    with pytest.raises(TypeError, match=said):
        Conv2D("conv0", frames(), 32, kernel_shap=3)
    with pytest.raises(TypeError, match="got zz, which FullyConnected does not take. It takes "):
        FullyConnected("fc0", frames(), 32, zz=3)


def test_a_layer_name_that_is_used_twice_names_the_first_line():
    def first():
        FullyConnected("fc0", frames(), 8)

    first()
    with pytest.raises(ValueError, match="Variable fc0/W already exists") as info:
        FullyConnected("fc0", frames(), 8)
    (note,) = notes_of(info.value)
    line = first.__code__.co_firstlineno + 1
    assert f"'fc0' were made at {__file__}:{line}, in first: give one" in note
    assert "a graph of its own: with tf.Graph().as_default()" in note
