"""Tests of LinearWrap."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import LinearWrap

from .tools import run, variable_shapes


def test_a_chain_of_layers():
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    wrap = (
        LinearWrap(x)
        .Conv2D("conv0", 4, 3, nl=tf.nn.relu)
        .MaxPooling("pool0", 2)
        .Deconv2D("up", 2, 3, strides=2)
        .PReLU("prelu")
        .Dropout(0.5)
        .Dropout("drop", rate=0.5)
        .FullyConnected("fc", out_dim=10)
    )
    assert isinstance(wrap, LinearWrap)
    assert wrap().op.name == "fc/output"
    assert wrap() is wrap.tensor()
    assert "prelu/alpha" in variable_shapes()


def test_functions_of_tensorflow():
    wrap = LinearWrap(tf.constant([-1.0, 4.0])).tf.nn.relu(name="positive").tf.sqrt()
    assert np.array_equal(run(wrap()), [0.0, 2.0])
    assert wrap().op.inputs[0].op.name == "positive"


def test_apply():
    wrap = LinearWrap(tf.constant(3.0))
    assert run(wrap.apply(tf.subtract, 1.0)()) == 2
    assert run(wrap.apply2(tf.subtract, 1.0)()) == -2
    assert run(wrap.apply(tf.subtract, y=1.0)()) == 2
    assert run(wrap()) == 3


def test_concat_with_and_print_tensor(lines):
    x = tf.constant([[1.0]])
    wrap = LinearWrap(x).ConcatWith(x * 2, 1).ConcatWith([x * 3, x * 4], dim=1)
    assert run(wrap()).tolist() == [[1, 2, 3, 4]]
    assert wrap.print_tensor() is wrap
    assert lines == [str(wrap.tensor())]


@pytest.mark.parametrize("name, near", [("Conv2d", "Conv2D"), ("aply", "apply"), ("Maxout2", "")])
def test_unknown_methods_are_named(name, near):
    with pytest.raises(AttributeError, match=f"no method '{name}'.*{near}"):
        getattr(LinearWrap(tf.constant(1.0)), name)
    assert not hasattr(LinearWrap(None), "__array__")
