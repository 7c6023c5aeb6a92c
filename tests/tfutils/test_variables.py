"""Tests of pairs of variables, as a target network makes them."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.variables import VariablePairs, build_twin, record_variables


def network(x):
    with tf.variable_scope("fc"):
        w = tf.get_variable("W", [3, 2])
        b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
    scale = tf.get_variable("scale", [], trainable=False)
    with tf.variable_scope("fc", reuse=True):
        assert tf.get_variable("W", [3, 2]) is w  # asked for twice, recorded once
    return (tf.matmul(x, w) + b) * scale


def names(variables):
    return [each.op.name for each in variables]


def build():
    x = tf.ones([1, 3])
    output, online = record_variables(network, x)
    twin, pairs = build_twin("target", network, x, source=online)
    return output, online, twin, pairs


def test_twin_is_made_under_its_scope_and_not_trained():
    _, online, twin, pairs = build()
    assert names(online) == ["fc/W", "fc/b", "scale"]
    assert [(target.op.name, source.op.name) for target, source in pairs] == [
        ("target/fc/W", "fc/W"),
        ("target/fc/b", "fc/b"),
        ("target/scale", "scale"),
    ]
    assert len(pairs) == 3
    assert names(tf.trainable_variables()) == ["fc/W", "fc/b"]
    assert names(tf.global_variables()) == names(online) + ["target/" + n for n in names(online)]
    grads = tf.train.GradientDescentOptimizer(1.0).compute_gradients(tf.reduce_sum(twin))
    assert [gradient for gradient, _ in grads] == [None, None]


def test_the_cost_has_no_regularization_of_the_twin():
    with tf.variable_scope("", regularizer=tf.nn.l2_loss):
        build()
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert len(losses) == 3 and not any("target" in each.op.name for each in losses)


def test_copy_op_has_its_name_and_copies_everything(session):
    output, online, twin, pairs = build()
    with tf.name_scope("PeriodicTrigger"), tf.name_scope("RunOp"):
        copy = pairs.copy_op("update_target_network")
    assert copy.name == "PeriodicTrigger/RunOp/update_target_network"
    sess = session()
    assert (sess.run(output) != sess.run(twin)).all()
    sess.run(copy)
    for target, source in pairs:
        assert (sess.run(target) == sess.run(source)).all()
    assert (sess.run(output) == sess.run(twin)).all()
    sess.run(online[1].assign([5.0, 5.0]))
    assert (sess.run(output) != sess.run(twin)).all()


def test_twins_that_differ_are_refused():
    a = tf.get_variable("a", [2])
    with pytest.raises(ValueError, match=r"1 variables \(a\).*0 \(none\)"):
        VariablePairs([a], [])
