"""Tests of ImageSample."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import ImageSample

from .tools import image, run

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
