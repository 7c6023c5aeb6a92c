"""Tests of SoftMax."""

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.models import SoftMax

from .tools import image, run, variable_shapes


def softmax(values):
    powers = np.exp(values)
    return powers / powers.sum(-1, keepdims=True)


def test_values():
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
