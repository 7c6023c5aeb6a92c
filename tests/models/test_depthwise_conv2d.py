"""Tests of DepthwiseConv2D."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import DepthwiseConv2D, l2_regularizer

from .test_conv2d import convolve
from .tools import image, run, variable_shapes


def convolve_each(values, kernel, stride=1):
    """VALID convolution of each channel by its own kernels `[h, w, C, M]`, by definition."""
    parts = [
        convolve(values[..., i : i + 1], kernel[:, :, i : i + 1], stride)
        for i in range(values.shape[3])
    ]
    return np.concatenate(parts, 3)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2), (1, [1, 3])])
def test_values_names_shapes_and_gradients(multiplier, stride, dilation):
    x, values = image(2, 9, 8, 3)
    output = DepthwiseConv2D(
        "dw", x, [3, 2], stride, "valid", multiplier, dilation_rate=dilation, activation=tf.nn.relu
    )
    weights = output.variables
    gradients = tf.gradients(tf.square(output), [x, weights.W, weights.b])
    kernel, result, *gradients = run([weights.W, output, *gradients])
    down, across = dilation if isinstance(dilation, list) else [dilation] * 2
    spread = np.zeros((2 * down + 1, across + 1, 3, multiplier), np.float32)
    spread[::down, ::across] = kernel
    expected = np.maximum(convolve_each(values, spread, stride), 0)
    np.testing.assert_allclose(result, expected, atol=1e-4)
    assert output.op.name == "dw/output"
    assert list(result.shape) == output.shape.as_list()
    assert variable_shapes() == {"dw/W": [3, 2, 3, multiplier], "dw/b": [3 * multiplier]}
    assert all(np.abs(each).max() > 0 for each in gradients)


def test_defaults_channels_first_and_regularizer():
    x = tf.placeholder(tf.float32, [None, 200, 8, 6])
    output = DepthwiseConv2D(
        "d", x, 5, 2, data_format="NCHW", use_bias=False, kernel_regularizer=l2_regularizer(2.0)
    )
    assert output.shape.as_list() == [None, 200, 4, 3]
    kernel = run(output.variables.W)
    assert kernel.shape == (5, 5, 200, 1)
    assert abs(kernel.std() / np.sqrt(2 / 25) - 1) < 0.03
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1


def test_strides_with_dilation_are_refused():
    with pytest.raises(ValueError, match="cannot both be above 1"):
        DepthwiseConv2D("d", tf.zeros([1, 8, 8, 2]), 3, strides=2, dilation_rate=2)
