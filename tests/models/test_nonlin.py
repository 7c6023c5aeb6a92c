"""Tests of the activations, alone and inside other layers."""

import functools

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import BNReLU, Conv2D, FullyConnected, LeakyReLU, Maxout, PReLU, SoftMax

from .tools import image, run, variable_shapes


def test_prelu_name_variable_and_first_slope():
    output = PReLU("p", tf.zeros([1]))
    assert output.op.name == "p/output"
    assert variable_shapes() == {"p/alpha": []}
    assert output.variables.alpha.op.name == "p/alpha"
    assert run(output.variables.alpha) == np.float32(0.001)


def test_prelu_has_the_values_and_gradients_of_the_plain_formula():
    x, values = image(8, 9, 9, 4)
    weights, arriving = image(8, 9, 9, 4, seed=1)
    output = PReLU("p", x, init=0.25)
    result, gradients = run([output, tf.gradients(output, [x, output.variables.alpha], weights)])
    slopes = np.where(values > 0, 1, 0.25)
    np.testing.assert_allclose(result, slopes * values, rtol=1e-6)
    np.testing.assert_allclose(gradients[0], slopes * arriving, rtol=1e-6)
    # a sum of some 2,600 float32 terms, which are not added up in the same order
    np.testing.assert_allclose(gradients[1], (np.minimum(values, 0) * arriving).sum(), rtol=1e-5)


@pytest.mark.parametrize("slope", [0.25, 1.5])
def test_prelu_at_zero_and_of_infinity(slope):
    x = tf.constant([-np.inf, -1.0, -0.0, 0.0, np.inf], tf.float32)
    output = PReLU("p", x, init=slope)
    values, by_input = run([output, tf.gradients(output, x)[0]])
    np.testing.assert_array_equal(values, np.float32([-np.inf, -slope, 0, 0, np.inf]))
    np.testing.assert_array_equal(by_input, np.float32([slope, slope, slope, slope, 1]))
    assert run(tf.gradients(PReLU("q", x[1:]), tf.trainable_variables("q"))) == [-1]


def test_prelu_has_second_derivatives():
    x = tf.constant([-1.0, 2.0])
    output = PReLU("p", x, init=0.25)
    (slopes,) = tf.gradients(output**3, x)  # 3 x^2 slope^3
    by_input, by_slope = tf.gradients(slopes, [x, output.variables.alpha])
    np.testing.assert_allclose(run(by_input), [-6 * 0.25**3, 12])
    np.testing.assert_allclose(run(by_slope), 9 * 0.25**2)


@pytest.mark.parametrize(
    "option",
    [
        {"nl": PReLU.symbolic_function},
        {"activation": PReLU},
        {"activation": functools.partial(PReLU, init=0.001)},
        {"nl": lambda x, name: PReLU.symbolic_function(x, name=name)},
    ],
)
def test_prelu_in_a_layer_belongs_to_that_layer(option):
    x, _ = image(1, 4, 4, 1)
    output = Conv2D("conv0", x, 2, 3, **option)
    assert list(variable_shapes()) == ["conv0/W", "conv0/b", "conv0/alpha"]
    assert output.op.name == "conv0/output"


def test_leaky_relu_values():
    x, values = image(4, 5)
    output = LeakyReLU(x, 0.1, name="leaky")
    np.testing.assert_allclose(run(output), np.maximum(values, 0.1 * values), rtol=1e-6)
    assert output.op.name == "leaky"
    gradient = run(tf.gradients(output, x)[0])
    np.testing.assert_allclose(gradient, np.where(values > 0, 1, 0.1), rtol=1e-6)


def test_leaky_relu_in_a_layer_and_with_a_scope():
    x, _ = image(2, 3)
    other = FullyConnected("fc1", x, 4, activation=functools.partial(LeakyReLU, alpha=0.01))
    assert other.op.name == "fc1/output"
    assert LeakyReLU("l", tf.zeros([2]), 0.1).op.name == "l/output"


@pytest.mark.parametrize("static", [[4, 6], [2, 3, None, 6]])
def test_maxout(static):
    x, shape = tf.placeholder(tf.float32, static), [size or 5 for size in static]
    values = image(*shape)[1]
    output = Maxout("m", x, 3)
    expected = values.reshape([*shape[:-1], 2, 3]).max(-1)
    assert np.array_equal(run(output, {x: values}), expected)
    assert output.op.name == "m/output"
    assert output.shape.as_list() == [*static[:-1], 2]
    with pytest.raises(ValueError, match="multiple of 4"):
        Maxout(tf.zeros([2, 6]), 4)


def test_bn_relu_as_an_activation():
    x, _ = image(2, 4, 4, 1)
    output = Conv2D("c", x, 3, 3, use_bias=False, activation=BNReLU)
    assert list(variable_shapes()) == ["c/W", "c/bn/beta", "c/bn/gamma"]
    assert output.op.name == "c/output"
    assert run(output).min() == 0


def softmax(values):
    powers = np.exp(values)
    return powers / powers.sum(-1, keepdims=True)


def test_softmax_values():
    x, values = image(4, 5)
    output = SoftMax("s", x)
    np.testing.assert_allclose(run(output), softmax(values), rtol=1e-5)
    assert output.op.name == "s/output"
    assert variable_shapes() == {} and output.variables.all() == []


def test_the_temperature_is_learned_by_its_inverse():
    x, values = image(4, 5)
    output = SoftMax("s", x, use_temperature=True, temperature_init=2.0)
    inverse = output.variables.invtemp
    result, first, gradient = run([output, inverse, tf.gradients(output[0, 0], inverse)[0]])
    assert first == 0.5 and gradient != 0
    np.testing.assert_allclose(result, softmax(values / 2), rtol=1e-5)
    assert variable_shapes() == {"s/invtemp": []}
