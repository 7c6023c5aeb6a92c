"""Tests of costs that are each for variables of their own."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import OptimizerPerScope, TowerContext, separate_costs


def two_players():
    """A generator with an embedding, and a critic, whose gradients differ for each cost."""
    with tf.variable_scope("gen"):
        table = tf.get_variable("table", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
        made = tf.reduce_sum(tf.gather(table, [0, 2, 0]))
    with tf.variable_scope("critic"):
        weight = tf.get_variable("weight", initializer=2.0)
        unused = tf.get_variable("unused", initializer=1.0)
    g_loss = tf.square(made) * weight
    d_loss = made * tf.pow(weight, 3)
    return table, weight, unused, g_loss, d_loss


def test_each_variable_follows_its_own_cost_and_sparse_gradients_stay_sparse(session):
    table, weight, unused, g_loss, d_loss = two_players()
    cost = separate_costs((g_loss, "gen"), (d_loss, [weight, unused]))
    of_table, of_weight, of_unused = tf.gradients(cost, [table, weight, unused])
    assert isinstance(of_table, tf.IndexedSlices) and of_unused is None
    expected = [
        tf.convert_to_tensor(tf.gradients(g_loss, table)[0]),
        tf.gradients(d_loss, weight)[0],
        g_loss + d_loss,
    ]
    sess = session()
    values = sess.run([tf.convert_to_tensor(of_table), of_weight, cost])
    for value, other in zip(values, sess.run(expected)):
        np.testing.assert_allclose(value, other, rtol=1e-6)


def test_where_nothing_is_trained_it_is_the_sum():
    with TowerContext("", is_training=False):
        _, weight, _, g_loss, d_loss = two_players()
        cost = separate_costs((g_loss, "nowhere"), (d_loss, [weight]))
        assert cost.op.type == "AddN"


def test_what_cannot_be():
    table, weight, unused, g_loss, d_loss = two_players()
    with pytest.raises(ValueError, match="gen/table:0 belongs to two costs"):
        separate_costs((g_loss, "gen"), (d_loss, [weight, table]))
    with pytest.raises(ValueError, match="no trainable variables in the scope generator"):
        separate_costs((g_loss, "generator"))
    with pytest.raises(ValueError, match="does not depend on any of critic/unused:0"):
        separate_costs((g_loss, [unused]))


def test_each_scope_has_its_optimizer(session):
    names = ["a/x", "a/b/x", "other"]
    variables = [tf.get_variable(name, initializer=1.0) for name in names]
    make = tf.train.GradientDescentOptimizer
    momentum = tf.train.MomentumOptimizer(3.0, 0.9)
    optimizer = OptimizerPerScope({"a": make(1.0), "a/b": momentum, "": make(2.0)})
    step = tf.train.get_or_create_global_step()
    update = optimizer.minimize(tf.add_n(variables), global_step=step, var_list=variables)
    sess = session()
    sess.run(update)
    assert sess.run([*variables, step]) == [0.0, -2.0, -1.0, 1]
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.get_slot(variables[1], "momentum") is not None
    assert [each.op.name for each in optimizer.variables()] == ["a/b/x/Momentum"]


def test_a_variable_without_an_optimizer_is_named():
    variable = tf.get_variable("ab", initializer=1.0)
    optimizer = OptimizerPerScope({"a": tf.train.GradientDescentOptimizer(1.0)})
    with pytest.raises(ValueError, match="ab:0 is in none of the scopes a: "):
        optimizer.apply_gradients([(tf.constant(1.0), variable)])
    with pytest.raises(ValueError, match="needs an optimizer"):
        OptimizerPerScope({})
