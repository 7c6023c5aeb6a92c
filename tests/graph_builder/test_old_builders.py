"""The builders and helpers of scripts for 0.6 to 0.10 that build their towers by hand."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder.predict import SimplePredictBuilder
from tensorpack.graph_builder.training import (
    AsyncMultiGPUBuilder,
    GraphBuilder,
    SyncMultiGPUParameterServerBuilder,
    SyncMultiGPUReplicatedBuilder,
)
from tensorpack.graph_builder.utils import (
    OverrideCachingDevice,
    OverrideToLocalVariable,
    aggregate_grads,
    average_grads,
    override_to_local_variable,
)
from tensorpack.input_source import PlaceholderInput
from tensorpack.tfutils import get_default_sess_config
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.tfutils.varreplace import custom_getter_scope

BUILDERS = {
    "variables shared": (lambda: SyncMultiGPUParameterServerBuilder([0, 1], "cpu"), 0.85),
    "a copy in each tower": (lambda: SyncMultiGPUReplicatedBuilder([0, 1], True, "cpu"), 0.85),
    "the sum": (lambda: SyncMultiGPUReplicatedBuilder([0, 1], average=False), 0.7),
    "each by itself": (lambda: AsyncMultiGPUBuilder([0, 1]), 0.85),
    "each, not scaled": (lambda: AsyncMultiGPUBuilder([0, 1], scale_gradient=False), 0.7),
}


def get_grads():
    """The gradients of a tower: 1 in the first one, 2 in the second."""
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    factor = 1.0 + get_current_tower_context().index
    return get_optimizer().compute_gradients(w * factor, [w])


def get_optimizer():
    return tf.train.GradientDescentOptimizer(0.1)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("towers_first", [True, False], ids=["as of 0.9.4", "up to 0.9.0"])
def test_a_step_of_a_builder(name, towers_first):
    make, expected = BUILDERS[name]
    builder = make()
    assert isinstance(builder, GraphBuilder) and builder.towers == [0, 1]
    built = builder.build(
        builder.call_for_each_tower(get_grads) if towers_first else get_grads, get_optimizer
    )
    train_op, sync_op = built if isinstance(built, tuple) else (built, tf.no_op())
    with tf.Session(config=get_default_sess_config()) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(sync_op)
        session.run(train_op)
        values = session.run(tf.global_variables() + tf.local_variables())
    assert len(values) == (2 if "copy" in name or "sum" in name else 1)
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_a_tower_that_predicts():
    source = PlaceholderInput()
    source.setup([tf.TensorSpec([None], tf.float32, "x")])

    def tower(x):
        context = get_current_tower_context()
        return (x * 2).name, context.is_training, tf.get_variable("w", []).name

    built = SimplePredictBuilder(ns_name="test", vs_name="model", device=-1).build(source, tower)
    assert built == ("test/mul:0", False, "model/w:0")


def collections_of(variable):
    keys = tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES
    return [any(var is variable for var in tf.get_collection(key)) for key in keys]


def test_local_variables_in_place_of_global_ones():
    with override_to_local_variable():
        trained, other = tf.get_variable("a", [2]), tf.get_variable("b", [2], trainable=False)
    with override_to_local_variable(False):
        normal = tf.get_variable("c", [2])
    with custom_getter_scope(OverrideToLocalVariable):
        local = tf.get_variable("d", [2])
    assert collections_of(normal) == [True, False]
    assert [collections_of(var) for var in (trained, other, local)] == [[False, True]] * 3
    assert [var.op.name for var in tf.trainable_variables()] == ["a", "c", "d"]


def test_gradients_of_towers_are_averaged_or_added():
    v = tf.get_variable("v", [2])
    towers = [[(tf.fill([2], x), v)] for x in (1.0, 3.0)]
    ((mean, first),), ((total, second),) = average_grads(towers), aggregate_grads(towers, average=0)
    assert first is second is v
    with tf.Session() as session:
        assert np.array(session.run([mean, total])).tolist() == [[2, 2], [4, 4]]


def test_variables_are_cached_on_the_device_that_holds_the_least():
    devices = []

    def getter(name, **kwargs):
        devices.append(kwargs.get("caching_device"))

    place = OverrideCachingDevice(["/cpu:0", "/cpu:1"], "/cpu:2", 10)
    for size in 5, 20, 12, 15:
        place(getter, "w", shape=[size])
    place(getter, "w", shape=[100], trainable=False)
    assert devices == ["/cpu:2", "/cpu:0", "/cpu:1", "/cpu:1", None]
