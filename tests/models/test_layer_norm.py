"""Tests of LayerNorm, InstanceNorm and GroupNorm."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import GroupNorm, InstanceNorm, LayerNorm

from .tools import image, normalize, run, variable_shapes


@pytest.mark.parametrize(
    "layer, shape, axes",
    [
        (LayerNorm, (4, 6), 1),
        (LayerNorm, (2, 3, 4, 6), (1, 2, 3)),
        (InstanceNorm, (2, 3, 4, 6), (1, 2)),
    ],
)
def test_values(layer, shape, axes):
    x, values = image(*shape)
    output = layer("n", x, 0.1)
    np.testing.assert_allclose(run(output), normalize(values, axes, 0.1), atol=1e-4)
    assert output.op.name == "n/output"
    assert variable_shapes() == {"n/beta": [6], "n/gamma": [6]}
    gradients = tf.gradients(tf.pow(output, 3), [x, *output.variables.all()])
    assert all(np.abs(each).max() > 0 for each in run(gradients))


@pytest.mark.parametrize("layer, axes", [(LayerNorm, (1, 2, 3)), (InstanceNorm, (2, 3))])
def test_channels_first(layer, axes):
    x, values = image(2, 3, 4, 5)
    gamma = tf.constant_initializer([1.0, 2.0, 3.0])
    output = layer("n", x, data_format="NCHW", gamma_initializer=gamma)
    expected = normalize(values, axes) * np.array([1, 2, 3]).reshape(1, 3, 1, 1)
    np.testing.assert_allclose(run(output), expected, atol=1e-4)


def test_without_scale_and_center():
    x, _ = image(2, 3, 4, 5)
    LayerNorm("a", x, center=False)
    LayerNorm("b", x, scale=False)
    InstanceNorm("c", x, use_affine=False)
    assert list(variable_shapes()) == ["a/gamma", "b/beta"]


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("groups", [1, 2])
def test_groups_of_channels(data_format, groups):
    first = data_format == "channels_first"
    values = np.random.RandomState(0).randn(2, 6, 4, 5).astype(np.float32)
    expected = normalize(values.reshape(2, groups, -1), 2).reshape(values.shape)
    expected *= np.arange(1, 7).reshape(6, 1, 1)
    if not first:
        values, expected = (np.moveaxis(each, 1, 3) for each in (values, expected))
    x = tf.placeholder(tf.float32, [None, 6, None, 5] if first else [None, None, 5, 6])
    gamma = tf.constant_initializer(np.arange(1.0, 7.0))
    output = GroupNorm("gn", x, groups, data_format=data_format, gamma_initializer=gamma)
    np.testing.assert_allclose(run(output, {x: values}), expected, atol=1e-4)
    assert output.op.name == "gn/output"
    assert output.shape.as_list() == x.shape.as_list()
    assert variable_shapes() == {"gn/beta": [6], "gn/gamma": [6]}
    gradients = tf.gradients(tf.pow(output, 3), [x, *output.variables.all()])
    assert all(np.abs(each).max() > 0 for each in run(gradients, {x: values}))


def test_groups_must_be_equal():
    with pytest.raises(ValueError, match="groups=32 must divide the number of channels, 6"):
        GroupNorm("gn", tf.ones([1, 2, 2, 6]))
