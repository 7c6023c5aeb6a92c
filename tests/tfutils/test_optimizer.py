"""Tests of the wrapping optimizers, on updates that can be computed by hand."""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.gradproc import MapGradient, ScaleGradient, SummaryGradient
from tensorpack.tfutils.optimizer import (
    AccumGradOptimizer,
    PostProcessOptimizer,
    ProxyOptimizer,
    VariableAssignmentOptimizer,
    apply_grad_processors,
)

pytestmark = pytest.mark.parametrize("use_resource", [False, True], ids=["ref", "resource"])


def sgd():
    return tf.train.GradientDescentOptimizer(1.0)


@pytest.fixture
def conditional_updates(use_resource):
    """Skips where TensorFlow itself cannot update such a variable inside of tf.cond."""
    if is_tfv2() and not use_resource:
        pytest.skip("TensorFlow 2 takes no ref variables into tf.cond")


def make(use_resource, **values):
    """Variables with these initial values, by name."""
    with tf.variable_scope("", use_resource=use_resource):
        return [tf.get_variable(name, initializer=value) for name, value in values.items()]


def test_proxy_does_what_the_wrapped_one_does(session, use_resource):
    (v,) = make(use_resource, v=1.0)
    step = tf.train.get_or_create_global_step()
    inner = tf.train.MomentumOptimizer(1.0, 0.9)
    proxy = ProxyOptimizer(inner)
    train = proxy.minimize(v * 2.0, global_step=step)
    assert proxy.get_slot_names() == ["momentum"]
    assert proxy.get_slot(v, "momentum") is inner.get_slot(v, "momentum")
    assert proxy.variables() == inner.variables() != []
    sess = session()
    sess.run(train)
    assert sess.run([v, step]) == [-1.0, 1]


def test_processors_run_in_order_inside_apply_gradients(session, use_resource):
    a, b = make(use_resource, a=0.0, b=0.0)
    processors = [MapGradient(lambda g: g + 1), ScaleGradient([("a", 10), ("b", 0)], verbose=False)]
    optimizer = apply_grad_processors(sgd(), processors)
    grads = optimizer.compute_gradients(2 * a + 2 * b)
    train = optimizer.apply_gradients(grads, name="train_op")
    assert train.name == "train_op"
    sess = session()
    assert sess.run([g for g, _ in grads]) == [2, 2]
    sess.run(train)
    assert sess.run([a, b]) == [-30.0, 0.0]


def test_post_processing_sees_the_updated_variable(session, use_resource):
    a, b, log = make(use_resource, a=1.0, b=1.0, log=0.0)

    def process(variable):
        return log.assign_add(variable, read_value=False) if variable is a else None

    train = PostProcessOptimizer(sgd(), process).minimize(
        3 * a + 3 * b, var_list=[a, b], name="train_op"
    )
    assert train.name == "train_op"
    updates = [each.name for each in ancestors([train]) if "ApplyGradientDescent" in each.type]
    (logged,) = [each for each in train.control_inputs if "AssignAdd" in each.type]
    assert len(updates) == 2
    assert set(updates) <= {each.name for each in ancestors([logged])}
    sess = session()
    sess.run(train)
    assert sess.run([a, b, log]) == [-2, -2, -2]


@pytest.mark.parametrize("colocate", [True, False])
def test_post_processing_goes_to_the_device_of_the_variable(use_resource, colocate):
    with tf.device("/cpu:1"):
        (v,) = make(use_resource, v=1.0)
    ops = []

    def process(variable):
        ops.append(tf.no_op())
        return ops[-1]

    PostProcessOptimizer(sgd(), process, colocate=colocate).minimize(v * 1.0)
    assert ops[0].device.upper().endswith("CPU:1") == colocate


def test_assignment_bounds_variables_after_the_update(session, use_resource):
    a, b = make(use_resource, a=[1.0, 1.0], b=1.0)
    optimizer = VariableAssignmentOptimizer(
        sgd(), lambda v: tf.clip_by_value(v, 0, 10) if v is a else None
    )
    train = optimizer.minimize(tf.reduce_sum(a * [5.0, -5.0]) + 5 * b)
    sess = session()
    for expected in [[[0, 6], -4], [[0, 10], -9]]:
        sess.run(train)
        assert [value.tolist() for value in sess.run([a, b])] == expected


@pytest.mark.parametrize(
    "niter, expected",
    [
        (1, [-1, -1 - 2.5, -3.5 - 4.25, -7.75 - 12.125]),
        # The second sum is 60, to which half of the first, the momentum, is added.
        (3, [0, 0, -6, -6, -6, -6 - 63]),
    ],
)
def test_accumulation_applies_the_sum_at_every_last_step(
    session, use_resource, conditional_updates, niter, expected
):
    (v,) = make(use_resource, v=0.0)
    x = tf.placeholder(tf.float32, [])
    train = AccumGradOptimizer(tf.train.MomentumOptimizer(1.0, 0.5), niter).minimize(v * x)
    assert tf.trainable_variables() == [v]
    sess = session()
    for gradient, value in zip([1, 2, 3, 10, 20, 30], expected):
        sess.run(train, {x: gradient})
        assert sess.run(v) == value


def test_accumulation_takes_sparse_gradients(session, use_resource, conditional_updates):
    (table,) = make(use_resource, table=np.zeros([3, 1], np.float32))
    loss = tf.reduce_sum(tf.gather(table, [0, 2, 2]))
    optimizer = AccumGradOptimizer(sgd(), 2)
    grads = optimizer.compute_gradients(loss)
    assert isinstance(grads[0][0], tf.IndexedSlices)
    train = optimizer.apply_gradients(grads)
    sess = session()
    sess.run(train)
    sess.run(train)
    assert sess.run(table).tolist() == [[-2], [0], [-4]]


@pytest.mark.parametrize("number", [1, 2])
def test_two_sets_of_variables_accumulate_each_by_itself(
    session, use_resource, conditional_updates, number
):
    """As a generator and a discriminator, with one optimizer or with two; one has an odd name."""
    variables = make(use_resource, a=0.0, counter=0.0)
    optimizers = [AccumGradOptimizer(sgd(), 2) for _ in range(number)] * 2
    steps = [opt.minimize(v * 1.0, var_list=[v]) for opt, v in zip(optimizers, variables)]
    sess = session()
    for expected in [0, -2, -2, -4]:
        for step in steps:
            sess.run(step)
        assert sess.run(variables) == [expected, expected]


def test_accumulation_leaves_out_summaries_of_what_it_wraps(
    session, use_resource, conditional_updates, capsys
):
    """They had the value of some step that did not update, and failed on TensorFlow 2."""
    keys = ["MOVING_SUMMARY_OPS", tf.GraphKeys.SUMMARIES]
    v, w = make(use_resource, v=0.0, w=0.0)
    inside = AccumGradOptimizer(apply_grad_processors(sgd(), [SummaryGradient()]), 2)
    inside.minimize(v * 3.0, var_list=[v])
    assert "summarise around it" in capsys.readouterr().out
    assert [tf.get_collection(key) for key in keys] == [[], []]
    outside = apply_grad_processors(AccumGradOptimizer(sgd(), 2), [SummaryGradient()])
    outside.minimize(w * 3.0, var_list=[w])
    assert "summarise around it" not in capsys.readouterr().out
    updates, (scalar, _) = [tf.get_collection(key) for key in keys]
    sess = session()
    sess.run(updates)
    summary = tf.Summary.FromString(sess.run(scalar))
    assert summary.value[0].simple_value == 3.0


def test_accumulation_increments_the_global_step_at_each_run(
    session, use_resource, conditional_updates
):
    (v,) = make(use_resource, v=0.0)
    step = tf.get_variable("step", initializer=0, trainable=False, use_resource=use_resource)
    train = AccumGradOptimizer(sgd(), 2).minimize(v * 2, global_step=step, name="train")
    assert train.name == "train"
    sess = session()
    for expected in [(1, 0), (2, -4), (3, -4)]:
        sess.run(train)
        assert tuple(sess.run([step, v])) == expected
