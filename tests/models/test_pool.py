"""Tests of pooling, unpooling and sampling, and of shapes that are known in part."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    AvgPooling,
    AvgPooling3D,
    BilinearUpSample,
    FixedUnPooling,
    GlobalAvgPooling,
    ImageSample,
    MaxPooling,
    MaxPooling3D,
    StaticDynamicAxis,
    StaticDynamicShape,
)

from .tools import image, run


@pytest.mark.parametrize("layer, reduce", [(MaxPooling, np.max), (AvgPooling, np.mean)])
def test_windows_side_by_side_by_default(layer, reduce):
    x, values = image(2, 5, 6, 3)
    output = layer("pool", x, 2)
    blocks = values[:, :4].reshape(2, 2, 2, 3, 2, 3)
    np.testing.assert_allclose(run(output), reduce(blocks, axis=(2, 4)), atol=1e-6)
    assert output.op.name == "pool/output"
    assert output.shape.as_list() == [2, 2, 3, 3]


def test_overlapping_windows_with_padding():
    x, values = image(1, 3, 3, 1)
    output = run(MaxPooling("pool", x, shape=3, stride=1, padding="SAME"))[0, :, :, 0]
    grid = values[0, :, :, 0]
    assert output[0, 0] == grid[:2, :2].max()
    assert output[1, 1] == grid.max()


@pytest.mark.parametrize("layer", [MaxPooling, AvgPooling])
def test_channels_first(layer):
    x = tf.placeholder(tf.float32, [None, 3, 8, 6])
    assert layer("p", x, [4, 2], data_format="NCHW").shape.as_list() == [None, 3, 2, 3]


@pytest.mark.parametrize("layer, reduce", [(MaxPooling3D, np.max), (AvgPooling3D, np.mean)])
def test_volumes(layer, reduce):
    x, values = image(2, 4, 5, 6, 3)
    output = layer("pool", x, (2, 1, 3))
    blocks = values.reshape(2, 2, 2, 5, 1, 2, 3, 3)
    np.testing.assert_allclose(run(output), reduce(blocks, axis=(2, 4, 6)), atol=1e-6)
    assert output.op.name == "pool/output"
    assert output.shape.as_list() == [2, 2, 5, 2, 3]
    corner = run(layer("same", x, shape=3, stride=2, padding="SAME"))[0, 0, 0, 0]
    # SAME pads 1 where the size is even, all of it behind, and on both sides where it is odd
    np.testing.assert_allclose(corner, reduce(values[0, :3, :2, :3], (0, 1, 2)), atol=1e-6)
    first = tf.placeholder(tf.float32, [None, 3, 8, 6, 4])
    assert layer("p", first, 2, data_format="NCDHW").shape.as_list() == [None, 3, 4, 3, 2]


def test_global_average():
    x, values = image(2, 3, 4, 5)
    output = GlobalAvgPooling("gap", x)
    np.testing.assert_allclose(run(output), values.mean((1, 2)), atol=1e-6)
    assert output.op.name == "gap/output"
    first = GlobalAvgPooling("first", x, data_format="channels_first")
    np.testing.assert_allclose(run(first), values.mean((2, 3)), atol=1e-6)


def test_global_average_of_what_float16_cannot_add_up():
    large = GlobalAvgPooling("large", tf.constant(np.full([1, 56, 56, 2], 30, np.float16)))
    assert large.dtype == tf.float16 and large.op.name == "large/output"
    small = GlobalAvgPooling("small", tf.constant(np.full([1, 56, 56, 2], 0.125, np.float16)))
    assert np.array_equal(run([large, small]), [[[30, 30]], [[0.125, 0.125]]])


def test_unpooling_puts_pixels_at_the_top_left():
    x, values = image(2, 3, 4, 2)
    output = FixedUnPooling("up", x, 2)
    expected = np.zeros((2, 6, 8, 2), np.float32)
    expected[:, ::2, ::2] = values
    assert np.array_equal(run(output), expected)
    assert output.op.name == "up/output"
    assert output.shape.as_list() == [2, 6, 8, 2]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_unpooling_is_a_kronecker_product(data_format):
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = tf.placeholder(tf.float32, [None, None, 4, 5])
    values = np.random.RandomState(0).randn(2, 3, 4, 5).astype(np.float32)
    output = FixedUnPooling("up", x, (2, 3), matrix, data_format)
    result, gradient = run([output, tf.gradients(output, x)[0]], {x: values})
    planes = values.transpose(0, 3, 1, 2) if data_format == "NHWC" else values
    expected = np.stack([[np.kron(plane, matrix) for plane in each] for each in planes])
    if data_format == "NHWC":
        expected = expected.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    np.testing.assert_allclose(gradient, np.full_like(values, matrix.sum()))
    known = [None, None, 12, 5] if data_format == "NHWC" else [None, None, 8, 15]
    assert output.shape.as_list() == known


def enlarge(values, factor, axis):
    """Linear interpolation between centres of pixels, by definition."""
    size = values.shape[axis]
    points = (np.arange(size * factor) + 0.5) / factor - 0.5
    interpolate = lambda row: np.interp(points, np.arange(size), row)  # noqa: E731
    return np.apply_along_axis(interpolate, axis, values)


@pytest.mark.parametrize("factor", [1, 3])
def test_bilinear_enlargement(factor):
    x = tf.placeholder(tf.float32, [None, 3, None, 2])
    values = np.random.RandomState(0).randn(2, 3, 4, 2).astype(np.float32)
    output = BilinearUpSample("up", x, factor)
    result, gradient = run([output, tf.gradients(output, x)[0]], {x: values})
    np.testing.assert_allclose(result, enlarge(enlarge(values, factor, 1), factor, 2), atol=1e-5)
    np.testing.assert_allclose(gradient.sum(), result.size, rtol=1e-5)
    assert output.op.name == "up/output"
    assert output.shape.as_list() == [None, 3 * factor, None, 2]


def test_bilinear_enlargement_keeps_the_dtype():
    x = tf.zeros([1, 2, 2, 1], tf.float16)
    assert BilinearUpSample("up", x=x, shape=2).dtype == tf.float16


# Pixel 10 * y + x: linear, so that interpolation is exact.
RAMP = (10.0 * np.arange(4)[:, None] + np.arange(5)).astype(np.float32)


def sample(points, **options):
    """The values of the ramp at the points (y, x)."""
    coordinates = tf.constant(np.array(points, np.float32).reshape(1, 1, -1, 2))
    inputs = [tf.constant(RAMP[None, :, :, None]), coordinates]
    return run(ImageSample.symbolic_function(inputs, **options)).ravel()


def test_the_function_of_a_layer_reads_between_pixels():
    points = [(0, 0), (3, 4), (1, 2), (0.5, 0), (0, 0.25), (2.5, 3.75), (3, 1.5)]
    assert sample(points).tolist() == [10 * y + x for y, x in points]
    assert sample(points, borderMode="constant").tolist() == sample(points).tolist()


def test_borders():
    points = [(-1, 2), (3.5, 2), (1, -0.25), (1, 4.5), (9, 9)]
    assert sample(points).tolist() == [2, 32, 10, 14, 34]
    assert sample(points, borderMode="constant").tolist() == [0] * 5


def test_each_image_has_its_own_coordinates():
    x, values = image(2, 4, 5, 3)
    grid = np.stack(np.meshgrid(np.arange(4), np.arange(5), indexing="ij"), -1)
    flipped = [3, 4] - grid
    coordinates = tf.placeholder(tf.float32, [None, None, None, 2])
    output = ImageSample("s", [x, coordinates])
    result = run(output, {coordinates: [grid, flipped]})
    np.testing.assert_array_equal(result, [values[0], values[1, ::-1, ::-1]])
    assert output.op.name == "s/output"


def test_another_border_is_refused():
    with pytest.raises(ValueError, match="borderMode must be one of .* got 'mirror'"):
        ImageSample("s", [tf.zeros([1, 4, 4, 1]), tf.zeros([1, 2, 2, 2])], borderMode="mirror")


def test_a_shape_in_both_forms():
    x = tf.placeholder(tf.float32, [None, 4, None])
    shape = StaticDynamicShape(x)
    assert shape.ndims == 3
    assert shape.get_static() == [None, 4, None]
    shape.apply(0, lambda size: size * 2)
    shape.apply(1, lambda size: size + 1)
    shape.apply(2, lambda size: 7)
    assert shape.get_static() == [None, 5, 7]
    fetches = [shape.get_dynamic(), shape.get_dynamic(0)]
    values, first = run(fetches, {x: [[[0.0] * 2] * 4] * 3})
    assert values.tolist() == [6, 5, 7] and first == 6
    assert shape.get_dynamic(1) == 5


def test_an_axis():
    running = tf.constant(3)
    axis = StaticDynamicAxis(None, running).apply(lambda size: size * 2)
    assert axis.static is None and run(axis.dynamic) == 6
    axis = StaticDynamicAxis(3, running).apply(lambda size: size * 2)
    assert (axis.static, axis.dynamic) == (6, 6)
