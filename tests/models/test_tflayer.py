"""Tests of the names of variables of `tf.layers`."""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.models import BatchNorm, Conv2D, rename_tflayer_get_variable
from tensorpack.models.tflayer import (
    convert_to_tflayer_args,
    map_common_tfargs,
)

from .tools import image, run, variable_shapes


def test_names_within_the_block_only():
    with tf.variable_scope("bn"), rename_tflayer_get_variable():
        names = ["kernel", "bias", "moving_mean", "moving_variance", "gamma", "my_kernel"]
        made = [tf.get_variable(name, []).op.name for name in names]
        with tf.variable_scope("kernel"):
            made.append(tf.get_variable("beta", []).op.name)
    made.append(tf.get_variable("kernel", []).op.name)
    ours = ["W", "b", "mean/EMA", "variance/EMA", "gamma", "my_kernel", "kernel/beta"]
    assert made == [f"bn/{name}" for name in ours] + ["kernel"]


@pytest.mark.skipif(is_tfv2(), reason="tf.layers is gone")
def test_layers_of_tensorflow_share_the_variables_of_ours():
    x, _ = image(2, 6, 6, 3)
    with rename_tflayer_get_variable():
        theirs = tf.layers.conv2d(x, 4, 3, name="conv0", padding="same")
        theirs = tf.layers.batch_normalization(theirs, epsilon=1e-5, name="bn")
    names = ["conv0/W", "conv0/b", "bn/gamma", "bn/beta", "bn/mean/EMA", "bn/variance/EMA"]
    assert [each.op.name for each in tf.global_variables()] == names
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        ours = BatchNorm("bn", Conv2D("conv0", x, 4, 3), training=False)
    assert len(variable_shapes()) == 4
    np.testing.assert_allclose(*run([ours, theirs]), atol=1e-4)


@convert_to_tflayer_args(["filters", "kernel_size"], {"out_channel": "filters"})
def layer(inputs, filters, kernel_size=3, **kwargs):
    return (inputs, filters, kernel_size, kwargs)


def test_a_layer_of_a_script_takes_both_spellings():
    assert layer("x", 8, 5) == layer("x", out_channel=8, kernel_size=5) == ("x", 8, 5, {})
    old = layer("x", 8, W_init="w", b_init="b", nl="relu", data_format="NCHW")
    assert old[3] == {
        "kernel_initializer": "w",
        "bias_initializer": "b",
        "activation": "relu",
        "data_format": "channels_first",
    }
    assert map_common_tfargs({"use_bias": False}) == {"use_bias": False}
    with pytest.raises(TypeError, match=r"layer\(\) takes by position only .*kernel_size"):
        layer("x", 8, 5, 1)
    with pytest.raises(TypeError, match="two names of the argument 'filters'"):
        layer("x", 8, out_channel=8)
