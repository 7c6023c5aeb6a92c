"""Tests of the layers with a kernel."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Deconv2D,
    DepthwiseConv2D,
    FullyConnected,
    PReLU,
    l2_regularizer,
)

from .tools import image, run, variable_shapes


def convolve(values, kernel, stride=1):
    """VALID convolution of `[N, H, W, C]` with `[h, w, C, O]`, by definition."""
    (height, width), (rows, columns) = kernel.shape[:2], values.shape[1:3]
    result = [
        [
            np.tensordot(values[:, i : i + height, j : j + width], kernel, 3)
            for j in range(0, columns - width + 1, stride)
        ]
        for i in range(0, rows - height + 1, stride)
    ]
    return np.moveaxis(result, 2, 0)


def test_values_names_shapes_and_gradients():
    x, values = image(2, 7, 6, 3)
    bias = tf.constant_initializer([0.0, 1.0, 2.0, 3.0])
    output = Conv2D("conv0", x, 4, [3, 2], padding="valid", strides=2, bias_initializer=bias)
    variables = output.variables.all()
    gradients = tf.gradients(tf.square(output), [x, *variables])
    kernel, result, *gradients = run([output.variables.W, output, *gradients])
    np.testing.assert_allclose(result, convolve(values, kernel, 2) + [0, 1, 2, 3], atol=1e-4)
    assert all(np.abs(each).max() > 0 for each in gradients)
    assert output.op.name == "conv0/output"
    assert output.shape.as_list() == [2, 3, 3, 4]
    assert variable_shapes() == {"conv0/W": [3, 2, 3, 4], "conv0/b": [4]}
    assert [each.op.name for each in variables] == ["conv0/W", "conv0/b"]


@pytest.mark.parametrize(
    "layer, sizes, fan_in",
    [
        (Conv2D, [400, 4], 4 * 4 * 50),
        (Conv2DTranspose, [400, 4], 4 * 4 * 400),
        (FullyConnected, [300], 4 * 4 * 50),
    ],
)
def test_default_initializers(layer, sizes, fan_in):
    x, _ = image(1, 4, 4, 50)
    kernel, bias = run(layer("c", x, *sizes).variables.all())
    expected = np.sqrt(2 / fan_in)
    assert abs(kernel.std() / expected - 1) < 0.01
    assert np.abs(kernel).max() > 3 * expected, "not truncated"
    assert not bias.any()


def test_split_gives_each_group_its_own_channels():
    x, values = image(1, 5, 5, 4)
    output = Conv2D("c", x, 6, 3, padding="valid", split=2, use_bias=False)
    assert variable_shapes() == {"c/W": [3, 3, 2, 6]}
    kernel, result = run([output.variables.W, output])
    halves = [(values[..., :2], kernel[..., :3]), (values[..., 2:], kernel[..., 3:])]
    expected = [convolve(*half) for half in halves]
    np.testing.assert_allclose(result, np.concatenate(expected, 3), atol=1e-4)


def test_dilation_spreads_the_kernel_and_has_a_gradient():
    x, values = image(1, 7, 7, 1)
    output = Conv2D("c", x, 2, 3, padding="VALID", dilation_rate=2)
    kernel = output.variables.W
    kernel, result, gradient = run([kernel, output, tf.gradients(output, kernel)[0]])
    spread = np.zeros((5, 5, 1, 2), np.float32)
    spread[::2, ::2] = kernel
    np.testing.assert_allclose(result, convolve(values, spread), atol=1e-4)
    assert gradient.any()


def test_channels_first():
    x = tf.placeholder(tf.float32, [None, 3, 8, 6])
    assert Conv2D("c", x, 5, 3, strides=2, data_format="NCHW").shape.as_list() == [None, 5, 4, 3]
    assert variable_shapes() == {"c/W": [3, 3, 3, 5], "c/b": [5]}


def test_variables_have_the_type_of_the_input_which_is_no_integer():
    output = Conv2D("c", tf.placeholder(tf.float64, [None, 4, 4, 1]), 2, 3)
    assert output.dtype == output.variables.W.dtype.base_dtype == tf.float64
    with pytest.raises(ValueError, match="uint8.*tf.cast"):
        Conv2D("d", tf.placeholder(tf.uint8, [None, 4, 4, 3]), 2, 3)


def test_regularizers_go_into_the_collection():
    x, _ = image(1, 4, 4, 1)
    kinds = ["kernel_regularizer", "bias_regularizer", "activity_regularizer"]
    output = Conv2D("c", x, 2, 3, **dict.fromkeys(kinds, l2_regularizer(2.0)))
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    kernel, result, costs = run([output.variables.W, output, losses])
    np.testing.assert_allclose(
        costs, [np.square(kernel).sum(), 0, np.square(result).sum()], rtol=1e-5
    )


def test_transpose_is_the_gradient_of_the_convolution():
    x, values = image(2, 3, 3, 2)
    output = Conv2DTranspose("d", x, 4, 3, strides=2, padding="valid")
    assert output.op.name == "d/output"
    assert variable_shapes() == {"d/W": [3, 3, 4, 2], "d/b": [4]}
    small = tf.zeros([2, 7, 7, 4])
    forward = tf.nn.conv2d(small, output.variables.W, [1, 2, 2, 1], "VALID")
    expected = tf.gradients(forward, small, x)[0]
    result, gradient = run([output, expected])
    assert result.shape == (2, 7, 7, 4) == tuple(output.shape.as_list())
    np.testing.assert_allclose(result, gradient, atol=1e-5)


@pytest.mark.parametrize(
    "padding, kernel, stride, size", [("same", 5, 2, 8), ("valid", 5, 2, 11), ("valid", 2, 3, 12)]
)
def test_transpose_knows_its_shape_as_far_as_that_of_the_input(padding, kernel, stride, size):
    x = tf.placeholder(tf.float32, [None, None, 4, 2])
    output = Deconv2D("d", x, 3, kernel, stride, padding)
    assert output.shape.as_list() == [None, None, size, 3]
    assert run(output, {x: np.ones([2, 4, 4, 2])}).shape == (2, size, size, 3)


def test_transpose_with_the_output_shape_of_2017():
    x = tf.placeholder(tf.float32, [None, 4, 4, 2])
    output = Deconv2D("d", x, out_shape=(7, 8, 3), kernel_shape=3, stride=2, nl=PReLU)
    assert output.shape.as_list() == [None, 7, 8, 3]
    assert run(output, {x: np.ones([1, 4, 4, 2])}).shape == (1, 7, 8, 3)
    assert list(variable_shapes()) == ["d/W", "d/b", "d/alpha"]


def test_transpose_channels_first():
    x = tf.placeholder(tf.float32, [None, 2, 4, 5])
    output = Conv2DTranspose("d", x, 3, 3, strides=2, data_format="channels_first")
    assert output.shape.as_list() == [None, 3, 8, 10]


@pytest.mark.parametrize("padding, size", [("valid", (12, 9)), ("same", (10, 5))])
def test_transpose_with_a_dilation_spreads_the_kernel(padding, size):
    x, values = image(2, 5, 5, 2)
    output = Conv2DTranspose(
        "d", x, 3, [2, 3], strides=[2, 1], padding=padding, dilation_rate=[3, 2]
    )
    assert variable_shapes() == {"d/W": [2, 3, 3, 2], "d/b": [3]}
    kernel, result, gradient = run(
        [output.variables.W, output, tf.gradients(output, output.variables.W)[0]]
    )
    assert result.shape == (2, *size, 3) == tuple(output.shape.as_list())
    spread = np.zeros((4, 5, 3, 2), np.float32)
    spread[::3, ::2] = kernel
    plain = tf.nn.conv2d_transpose(x, spread, [2, *size, 3], [1, 2, 1, 1], padding.upper())
    np.testing.assert_allclose(result, run(plain), atol=1e-5)
    assert gradient.shape == kernel.shape and gradient.any()


@pytest.mark.parametrize(
    "options, spread",
    [
        ({"strides": (2, 1, 3)}, 1),
        ({"padding": "valid"}, 1),
        ({"dilation_rate": 2}, 2),
    ],
)
def test_volumes(options, spread):
    x, _ = image(2, 5, 6, 7, 3)
    output = Conv3D("c", x, filters=4, kernel_size=(3, 2, 2), use_bias=False, **options)
    assert variable_shapes() == {"c/W": [3, 2, 2, 3, 4]}
    kernel = output.variables.W
    sparse = tf.scatter_nd(  # the kernel with zeros between its taps
        np.argwhere(np.ones([3, 2, 2])) * spread,
        tf.reshape(kernel, [-1, 3, 4]),
        [spread * (size - 1) + 1 for size in (3, 2, 2)] + [3, 4],
    )
    strides, padding = options.get("strides", (1, 1, 1)), options.get("padding", "same").upper()
    expected = tf.nn.conv3d(x, sparse, [1, *strides, 1], padding)
    pairs = [[each, *tf.gradients(tf.square(each), [x, kernel])] for each in (output, expected)]
    for ours, theirs in zip(*run(pairs)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert output.op.name == "c/output"
    assert output.shape.as_list() == expected.shape.as_list()


def test_volumes_with_channels_first():
    first = tf.placeholder(tf.float32, [None, 2, 8, 6, 4])
    output = Conv3D("d", first, 5, 3, strides=2, data_format="channels_first")
    assert output.shape.as_list() == [None, 5, 4, 3, 2]


def convolve_each(values, kernel, stride=1):
    """VALID convolution of each channel by its own kernels `[h, w, C, M]`, by definition."""
    parts = [
        convolve(values[..., i : i + 1], kernel[:, :, i : i + 1], stride)
        for i in range(values.shape[3])
    ]
    return np.concatenate(parts, 3)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2), (1, [1, 3])])
def test_channels_that_are_convolved_by_themselves(multiplier, stride, dilation):
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


def test_depthwise_defaults_channels_first_and_regularizer():
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
