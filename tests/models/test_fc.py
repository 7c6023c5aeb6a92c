"""Tests of FullyConnected."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import FullyConnected

from .tools import image, run, variable_shapes


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


@pytest.mark.parametrize("shape", [[], [None, 3, None, 2]])
def test_axes_must_be_known(shape):
    with pytest.raises(ValueError, match="an input whose dimensions are known, except the first"):
        FullyConnected("fc", tf.placeholder(tf.float32, shape), 2)


def test_options_in_another_order_are_refused():
    with pytest.raises(TypeError, match="by name"):
        FullyConnected("fc", tf.ones([2, 3]), 4, "relu")
