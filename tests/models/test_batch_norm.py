"""Tests of BatchNorm."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import BatchNorm
from tensorpack.tfutils.tower import TowerContext

from .tools import graph_of, image, normalize, run, variable_shapes


@pytest.mark.parametrize("shape, axes", [((8, 3), 0), ((4, 5, 5, 3), (0, 1, 2))])
def test_training_uses_the_batch(shape, axes):
    x, values = image(*shape)
    with TowerContext("", is_training=True):
        output = BatchNorm("bn", x * 3 + 1)
    variables = output.variables
    gradients = tf.gradients(tf.pow(output, 3), [x, variables.beta, variables.gamma])
    result, *gradients = run([output, *gradients])
    np.testing.assert_allclose(result, normalize(values * 3 + 1, axes), atol=1e-3)
    assert all(np.abs(each).max() > 0 for each in gradients)
    assert output.op.name == "bn/output"
    assert output.shape.as_list() == list(shape)
    assert variable_shapes() == {"bn/beta": [3], "bn/gamma": [3]}
    averages = tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)
    assert [each.op.name for each in averages] == ["bn/mean/EMA", "bn/variance/EMA"]
    assert [variables.mean, variables.variance] == averages


def test_inference_uses_the_averages():
    x, values = image(8, 3)
    with TowerContext("towerp0", is_training=False, vs_name="p"):
        output = BatchNorm("bn", x)
    np.testing.assert_allclose(run(output), values, rtol=1e-4)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []


def test_updates_move_the_averages():
    x, values = image(8, 3)
    with TowerContext("", is_training=True):
        variables = BatchNorm("bn", x, momentum=0.75).variables
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(updates)
        mean, variance = sess.run([variables.mean, variables.variance])
    np.testing.assert_allclose(mean, 0.25 * values.mean(0), atol=1e-6)
    np.testing.assert_allclose(variance, 0.75 + 0.25 * values.var(0, ddof=1), rtol=1e-5)


def test_internal_updates_happen_with_the_output():
    x, values = image(8, 3)
    output = BatchNorm("bn", x, training=True, ema_update="internal")
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(output)
        mean = sess.run(output.variables.mean)
    np.testing.assert_allclose(mean, 0.1 * values.mean(0), atol=1e-6)


@pytest.mark.parametrize("ema_update", ["default", "internal"])
def test_only_the_main_tower_updates_and_only_if_not_to_be_skipped(ema_update):
    x, _ = image(8, 3)
    with TowerContext("tower1", is_training=True, index=1, vs_name="tower1"):
        BatchNorm("bn", x, ema_update=ema_update)
    BatchNorm("bn", x, training=True, ema_update="skip")
    kinds = {each.type for each in tf.get_default_graph().get_operations()}
    assert not any("AssignSub" in kind for kind in kinds)


def test_both_spellings_build_the_same_graph():
    def old():
        x = tf.ones([4, 3])
        BatchNorm("a", x, use_local_stat=True, decay=0.8, use_scale=False, gamma_init=2.0)
        BatchNorm("b", x, False, 0.8, 1e-3, True, False, 2.0)

    def later():
        x = tf.ones([4, 3])
        BatchNorm("a", x, training=True, momentum=0.8, scale=False, gamma_initializer=2.0)
        two = tf.constant_initializer(2.0)
        BatchNorm("b", x, epsilon=1e-3, momentum=0.8, center=False, gamma_initializer=two)

    assert graph_of(old) == graph_of(later)


def test_scale_and_center_can_be_left_out():
    x, values = image(8, 3)
    output = BatchNorm("bn", x, training=True, scale=False, center=False)
    assert variable_shapes() == {}
    np.testing.assert_allclose(run(output), normalize(values, 0), atol=1e-3)


def test_channels_first_and_axis():
    x = tf.placeholder(tf.float32, [None, 3, 5, 7])
    BatchNorm("a", x, data_format="NCHW")
    BatchNorm("b", x, axis=1)
    BatchNorm("c", x, axis=3)
    assert list(variable_shapes().values()) == [[3], [3], [3], [3], [7], [7]]


@pytest.mark.parametrize(
    "shape, options, message",
    [
        ([None, 3, 3], {}, "2 or 4 dimensions"),
        ([None, None], {}, "number of channels"),
        ([None, 3], {"axis": 2}, "axis must be"),
        ([None, 3], {"ema_update": "never"}, "ema_update must be one of"),
    ],
)
def test_bad_arguments(shape, options, message):
    with pytest.raises(ValueError, match=message):
        BatchNorm("bn", tf.placeholder(tf.float32, shape), **options)
