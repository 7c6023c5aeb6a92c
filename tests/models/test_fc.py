"""Tests of FullyConnected."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import FullyConnected

from .tools import graph_of, image, run, variable_shapes


def test_flattens_and_multiplies():
    x, values = image(3, 2, 2, 5)
    bias = np.array([1.0, -1.0], np.float32)
    output = FullyConnected("fc", x, 2, bias_initializer=tf.constant_initializer(bias))
    gradients = tf.gradients(tf.square(output), [x, output.variables.W, output.variables.b])
    matrix, result, *gradients = run([output.variables.W, output, *gradients])
    np.testing.assert_allclose(result, values.reshape(3, 20) @ matrix + bias, atol=1e-5)
    assert all(np.abs(each).max() > 0 for each in gradients)
    assert output.op.name == "fc/output"
    assert variable_shapes() == {"fc/W": [20, 2], "fc/b": [2]}


def test_batch_size_may_be_unknown():
    x = tf.placeholder(tf.float32, [None, 11, 11, 64])
    assert FullyConnected("fc", x, 512).shape.as_list() == [None, 512]
    assert variable_shapes()["fc/W"] == [7744, 512]


def test_a_vector_is_one_number_for_each_example():
    x, values = image(3)
    output = FullyConnected("fc", x, 2, use_bias=False)
    matrix, result = run([output.variables.W, output])
    np.testing.assert_allclose(result, values[:, None] * matrix, rtol=1e-6)


def test_both_spellings_build_the_same_graph():
    def graph(*args, **kwargs):
        return graph_of(lambda: FullyConnected("f", tf.zeros([1, 3]), *args, **kwargs))

    one, tanh = tf.ones_initializer(), tf.nn.tanh
    old = graph(out_dim=4, W_init=one, b_init=one, nl=tanh)
    later = graph(units=4, kernel_initializer=one, bias_initializer=one, activation=tanh)
    assert old == later == graph(4, one, one, tanh, True)


def test_default_initializers():
    x, _ = image(1, 800)
    matrix, bias = run(FullyConnected("fc", x, 300).variables.all())
    assert abs(matrix.std() / np.sqrt(2 / 800) - 1) < 0.01
    assert not bias.any()


@pytest.mark.parametrize("shape", [[], [None, None], [None, 3, None, 2], None])
def test_axes_must_be_known(shape):
    with pytest.raises(ValueError, match="an input whose dimensions are known, except the first"):
        FullyConnected("fc", tf.placeholder(tf.float32, shape), 2)


@pytest.mark.parametrize("options", [[None, False], ["relu"]])
def test_options_in_another_order_are_refused(options):
    with pytest.raises(TypeError, match="by name"):
        FullyConnected("fc", tf.ones([2, 3]), 4, *options)
