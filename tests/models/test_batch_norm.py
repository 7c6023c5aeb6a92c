"""Tests of BatchNorm and BatchRenorm."""

from functools import partial

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.models import BatchNorm, BatchRenorm
from tensorpack.models._old_batch_norm import get_bn_variables, update_bn_ema
from tensorpack.tfutils.tower import TowerContext
from tests.tiers import first_fast

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


def test_updates_in_a_branch_are_those_of_the_output():
    x, values = image(8, 3)
    taken = tf.placeholder(tf.bool, [])

    def layer(name, **options):
        return tf.cond(taken, lambda: BatchNorm(name, x, **options), lambda: tf.identity(x))

    with TowerContext("", is_training=True):
        output = layer("internal", ema_update="internal")
        if is_tfv2():
            with pytest.raises(ValueError, match='is in a branch .* pass BatchNorm.ema_update="in'):
                layer("collected")
    mean = tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        means = [sess.run([output, mean], {taken: each}) and sess.run(mean) for each in (0, 1)]
    np.testing.assert_allclose(means, [[0] * 3, 0.1 * values.mean(0)], atol=1e-6)


@pytest.mark.parametrize("ema_update", ["default", "internal"])
def test_only_the_main_tower_updates_and_only_if_not_to_be_skipped(ema_update):
    x, _ = image(8, 3)
    with TowerContext("tower1", is_training=True, index=1, vs_name="tower1"):
        BatchNorm("bn", x, ema_update=ema_update)
    BatchNorm("bn", x, training=True, ema_update="skip")
    kinds = {each.type for each in tf.get_default_graph().get_operations()}
    assert not any("AssignSub" in kind for kind in kinds)


def test_channels_first_and_axis():
    x = tf.placeholder(tf.float32, [None, 3, 5, 7])
    BatchNorm("a", x, data_format="NCHW")
    BatchNorm("b", x, axis=1)
    BatchNorm("c", x, axis=3)
    assert list(variable_shapes().values()) == [[3], [3], [3], [3], [7], [7]]


@pytest.mark.parametrize("axis", [3, "NHWC"])
def test_the_second_position_is_training_and_no_axis(axis):
    with pytest.raises(
        TypeError, match=r"training must be .* got .*BatchNorm\(name, inputs, axis="
    ):
        BatchNorm("b", tf.zeros([1, 4, 4, 3]), axis)
    assert BatchNorm("c", tf.zeros([1, 4, 4, 3]), np.bool_(True)).shape.as_list() == [1, 4, 4, 3]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_a_virtual_batch_is_normalized_by_itself(data_format):
    x, values = image(6, 4, 5, 3)
    axes, channels = ((0, 1, 2), 3) if data_format == "NHWC" else ((0, 2, 3), 4)
    output = BatchNorm(
        "bn", x, training=True, virtual_batch_size=2, data_format=data_format, momentum=0.0
    )
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    variables = output.variables
    gradient = tf.gradients(tf.pow(output, 3), x)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        result, gradient, _ = sess.run([output, gradient, updates])
        mean, variance = sess.run([variables.mean, variables.variance])
    parts = [values[i::3] for i in range(3)]
    for i, part in enumerate(parts):
        np.testing.assert_allclose(result[i::3], normalize(part, axes), atol=1e-4)
    np.testing.assert_allclose(mean, np.mean([each.mean(axes) for each in parts], 0), atol=1e-5)
    np.testing.assert_allclose(variance, np.mean([each.var(axes) for each in parts], 0), rtol=1e-4)
    assert mean.shape == ((3,) if data_format == "NHWC" else (4,))
    assert np.abs(gradient).max() > 0
    assert output.shape.as_list() == [6, 4, 5, 3]


def in_training(x, **options):
    """The output of a BatchNorm with a cost; gradients by input and parameters."""
    output = BatchNorm("bn", x, momentum=0.0, beta_initializer=tf.ones_initializer(), **options)
    variables = output.variables
    cost = tf.reduce_mean(tf.reduce_sum(tf.sin(output), axis=list(range(1, x.shape.ndims))))
    return [output, *tf.gradients(cost, [x, variables.beta, variables.gamma])]


@pytest.mark.parametrize(
    "shape, order", first_fast([((6, 2, 3, 4), "NHWC"), ((6, 2, 3, 4), "NCHW"), ((6, 2), "")])
)
def test_towers_in_step_are_one_tower_with_all_of_their_batches(shape, order):
    x, _ = image(*shape)
    x = x * 3 + 50  # where a difference of mean squares has three digits
    swap = (lambda each: np.moveaxis(each, -1, 1)) if order == "NCHW" else (lambda each: each)
    parts, found = tf.split(tf.transpose(x, [0, 3, 1, 2]) if order == "NCHW" else x, 3), []
    for i, part in enumerate(parts):
        scope = f"tower{i}" if i else ""
        with tf.device(f"/cpu:{i}"), TowerContext(f"tower{i}", True, index=i, vs_name=scope):
            found.append(in_training(part, sync_statistics="nccl", data_format=order or "NHWC"))
    with TowerContext("", is_training=True), tf.variable_scope("one"):
        expected = in_training(x)
    averages = tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as sess:
        sess.run(tf.global_variables_initializer())
        found, expected, alone = sess.run([found, expected, found[1][0]])
        sess.run(updates)
        averages = sess.run(averages)
    outputs, by_input, by_beta, by_gamma = zip(*found)
    np.testing.assert_allclose(alone, outputs[1])
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=5e-5)
    close(np.concatenate(outputs), swap(expected[0]))
    close(np.concatenate(by_input) / 3, swap(expected[1]))
    close(np.mean(by_beta, 0), expected[2])
    close(np.mean(by_gamma, 0), expected[3])
    np.testing.assert_allclose(averages[:2], averages[-2:], rtol=1e-5)


def test_towers_of_different_batches_weigh_them():
    x, values = image(6, 3)
    found = []
    for i, part in enumerate([x[:1], x[1:]]):
        with TowerContext(f"tower{i}", True, index=i, vs_name=f"v{i}"):
            found.append(BatchNorm("bn", tf.cast(part, tf.float16), sync_statistics="horovod"))
    assert found[0].dtype == tf.float16
    np.testing.assert_allclose(np.concatenate(run(found)), normalize(values, 0), atol=1e-2)


def test_statistics_of_one_tower_are_in_step():
    def graph(**options):
        def build():
            with TowerContext("", is_training=True):
                BatchNorm("bn", tf.ones([4, 3]), **options)

        return graph_of(build)

    assert graph() == graph(sync_statistics="horovod") == graph(sync_statistics="nccl")
    with pytest.raises(ValueError, match="pass one of the two"):
        graph(sync_statistics="nccl", virtual_batch_size=2)


def renormalize(values, rmax, dmax, mean=0.0, variance=1.0):
    """The result of BatchRenorm for `[N, C]` while training, by definition."""
    batch_mean, batch_deviation = values.mean(0), np.sqrt(values.var(0) + 1e-5)
    deviation = np.sqrt(variance + 1e-5)
    r = np.clip(batch_deviation / deviation, 1 / rmax, rmax)
    d = np.clip((batch_mean - mean) / deviation, -dmax, dmax)
    return (values - batch_mean) / batch_deviation * r + d


@pytest.mark.parametrize("rmax, dmax", [(1, 0), (1.2, 0.3), (3.0, 5.0), (100.0, 100.0)])
def test_renormalization_is_the_published_one(rmax, dmax):
    x, values = image(8, 3)
    x, values = x * 2 + 0.5, values * 2 + 0.5
    with TowerContext("", is_training=True):
        output = BatchRenorm("bn", x, tf.constant(rmax, tf.float32), dmax, gamma_initializer=2.0)
    expected = renormalize(values, rmax, dmax)
    np.testing.assert_allclose(run(output), 2 * expected, atol=2e-4)
    if rmax == 100:
        np.testing.assert_allclose(expected, values, atol=1e-4)
    assert output.op.name == "bn/output"
    assert variable_shapes() == {"bn/beta": [3], "bn/gamma": [3]}


def test_renormalization_after_updates_and_in_inference():
    x, values = image(8, 3)
    with TowerContext("", is_training=True):
        output = BatchRenorm("bn", x, 2.0, 1.0, momentum=0.5)
    with TowerContext("towerp0", is_training=False):
        predicted = BatchRenorm("bn", x, 2.0, 1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        result, inference = sess.run([output, predicted])
    mean, variance = 0.5 * values.mean(0), 0.5 + 0.5 * values.var(0, ddof=1)
    np.testing.assert_allclose(result, renormalize(values, 2.0, 1.0, mean, variance), atol=1e-4)
    expected = (values - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(inference, expected, atol=1e-4)


def test_no_gradient_flows_through_the_corrections():
    x, values = image(8, 3)
    with TowerContext("", is_training=True):
        renormalized = BatchRenorm("r", x, 1.5, 0.5, use_scale=False)
        normalized = BatchNorm("n", x, use_scale=False)
    weights = tf.constant(values**2)
    gradients = run([tf.gradients(each, x, weights)[0] for each in (renormalized, normalized)])
    r = np.clip(values.std(0), 1 / 1.5, 1.5)
    np.testing.assert_allclose(gradients[0], gradients[1] * r, atol=1e-4)


@pytest.mark.parametrize("internal", [True, False])
def test_averages_of_a_layer_of_a_script(internal):
    beta, gamma, mean, variance = get_bn_variables(2, False, True, tf.ones_initializer())
    assert [each.op.name for each in tf.trainable_variables()] == [beta.op.name] == ["beta"]
    assert [mean.op.name, variance.op.name] == ["mean/EMA", "variance/EMA"]
    batch = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])
    x = update_bn_ema(tf.zeros([4, 2]), *batch, mean, variance, 0.5, internal)
    assert x.op.name == "output"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([x] if internal else tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        values = session.run([gamma, mean, variance])
    assert np.array(values).tolist() == [[1, 1], [0.5, 1], [2, 3]]
