"""Tests of LayerNorm and InstanceNorm."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import InstanceNorm, LayerNorm

from .tools import graph_of, image, normalize, run, variable_shapes


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
    output = layer("n", x)
    np.testing.assert_allclose(run(output), normalize(values, axes), atol=1e-4)
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


def test_both_spellings_build_the_same_graph():
    def old():
        LayerNorm("a", tf.ones([2, 3]), 1e-3, use_bias=False, use_scale=True)
        InstanceNorm("b", tf.ones([2, 3, 3, 1]), 1e-3, "NHWC", True)

    def later():
        LayerNorm("a", tf.ones([2, 3]), epsilon=1e-3, center=False, scale=True)
        InstanceNorm("b", tf.ones([2, 3, 3, 1]), epsilon=1e-3, data_format="channels_last")

    assert graph_of(old) == graph_of(later)


def test_images_only():
    with pytest.raises(ValueError, match="InstanceNorm needs images"):
        InstanceNorm("n", tf.ones([2, 3]))
    with pytest.raises(ValueError, match="LayerNorm needs images"):
        LayerNorm("n", tf.ones([2, 3, 4]))
