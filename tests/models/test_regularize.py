"""Tests of Dropout and of the costs on variables."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    Dropout,
    FullyConnected,
    l1_regularizer,
    l2_regularizer,
    regularize_cost,
    regularize_cost_from_collection,
)
from tensorpack.tfutils.tower import TowerContext
from tensorpack.tfutils.varreplace import freeze_variables

from .tools import run


def weights(name, values):
    return tf.get_variable(name, initializer=np.array(values, np.float32))


def test_dropout_keeps_the_mean_while_training():
    with TowerContext("", is_training=True):
        result = run(Dropout(tf.ones([100, 100]), 0.8, seed=1))
    assert set(np.unique(result)) == {0.0, np.float32(1.25)}
    assert abs((result > 0).mean() - 0.8) < 0.02


def test_dropout_does_nothing_elsewhere_unless_it_is_said_or_computed():
    x = tf.ones([100])
    with TowerContext("towerp0", is_training=False):
        predicted = Dropout("drop", x, 0.5)
    assert np.min(run([predicted, Dropout(x, 0.5)])) == 1
    assert run(Dropout(x, training=True)).min() == 0
    with TowerContext("", is_training=True):
        assert run(Dropout(x, is_training=False)).min() == 1
    flag = tf.placeholder(tf.bool, [])
    output = Dropout(x, 0.5, flag)
    assert run(output, {flag: True}).min() == 0
    assert run(output, {flag: False}).min() == 1


def test_regularizers():
    w = weights("w", [[1.0, -2.0], [3.0, 0.0]])
    assert run([l2_regularizer(0.5)(w), l1_regularizer(0.5)(w)]) == [3.5, 3.0]
    assert run(l1_regularizer()(w)) == pytest.approx(0.06)  # a hundredth
    assert run([l2_regularizer(x=0.5)(w), l1_regularizer(l=0.5)(w)]) == [3.5, 3.0]
    assert l2_regularizer(0.5, scope="cost")(w).op.name == "cost"
    assert l1_regularizer(scale=0.5, scope="lasso")(w).op.name == "lasso"
    assert run(l2_regularizer(tf.constant(0.5))(w)) == 3.5  # of a schedule


def test_cost_of_the_selected_variables(lines):
    w = weights("fc0/W", [2.0])
    weights("fc1/W", [4.0])
    weights("fc1/b", [100.0])
    tf.get_variable("fc2/W", initializer=1000.0, trainable=False)
    cost = regularize_cost("fc.*/W$", l2_regularizer(1.0))
    assert run([cost, tf.gradients(cost, w)[0]]) == [(4 + 16) / 2, 2]
    assert cost.op.name == "regularize_cost"
    assert lines == ["Apply regularizer for fc0/W:0", "Apply regularizer for fc1/W:0"]
    assert run(regularize_cost("W", l1_regularizer(1.0), name="again")) == 6
    assert len(lines) == 2


@pytest.mark.parametrize("vs_name", ["", "t"])
def test_frozen_variables_are_left_out(vs_name):
    with TowerContext("tower0", is_training=True, vs_name=vs_name):
        with freeze_variables():
            tf.get_variable("w", initializer=[100.0, 10.0], regularizer=l1_regularizer(1.0))
        free = tf.get_variable("free", initializer=2.0, regularizer=l1_regularizer(1.0))
        with freeze_variables(), tf.variable_scope(tf.get_variable_scope(), reuse=True):
            assert tf.get_variable("free").op.type == "StopGradient"  # and yet it is trained
        with freeze_variables(stop_gradient=False):
            by_hand = tf.get_variable("by_hand", initializer=3.0, regularizer=l1_regularizer(1.0))
        costs = [regularize_cost(".", l1_regularizer(1.0)), regularize_cost_from_collection()]
    assert run([*costs, *tf.gradients(costs, [free, by_hand])]) == [5.0, 5.0, 2.0, 2.0]


@pytest.mark.parametrize("regex", ["fc.*/W$", "fc.*/W:0$"])
def test_names_match_with_and_without_the_number_of_the_output(regex, lines):
    weights("fc0/W", [3.0])
    assert run(regularize_cost(regex, l1_regularizer(1.0))) == 3
    assert lines == ["Apply regularizer for fc0/W:0"]


def test_regularizers_of_float16_and_float64():
    short = tf.get_variable("short", initializer=np.full([1000, 1000], 0.0625, np.float16))
    long = tf.get_variable("long", initializer=np.float64([3, 4]))
    costs = [l2_regularizer(1.0)(short), l1_regularizer(1e-8)(short), l2_regularizer(0.1)(long)]
    assert [each.dtype for each in costs] == [tf.float32, tf.float32, tf.float64]
    np.testing.assert_allclose(run(costs), [1953.125, 0.000625, 1.25], rtol=1e-6)
    assert run(costs[2]) == 12.5 * 0.1  # exactly


def test_cost_of_nothing_is_zero_with_a_warning(capsys):
    cost = regularize_cost("fc.*/W", l2_regularizer(1.0))
    assert run(cost) == 0
    assert cost.op.name == "regularize_cost"
    said = "regularize_cost: no trainable variable matches 'fc.*/W', the cost is 0."
    assert said in capsys.readouterr().out
    assert run(regularize_cost_from_collection("none")) == 0


def test_cost_is_zero_in_predictors():
    with TowerContext("", is_training=True):
        weights("w", [3.0])
    with TowerContext("towerp0", is_training=False):
        assert run(regularize_cost("w", l2_regularizer(1.0))) == 0
        assert run(regularize_cost_from_collection()) == 0


def test_towers_with_own_variables_count_their_own():
    costs = []
    for i, value in enumerate([1.0, 5.0]):
        with TowerContext(f"tower{i}", is_training=True, index=i, vs_name=f"tower{i}"):
            tf.get_variable("w", initializer=value, regularizer=l1_regularizer(10.0))
            costs += [regularize_cost("^w", l1_regularizer(1.0)), regularize_cost_from_collection()]
    assert run(costs) == [1.0, 10.0, 5.0, 50.0]


def test_towers_that_share_variables_count_their_own_activations():
    """As `tf.layers`, whose losses of variables are in the name scope of the first tower."""
    costs, feed = [], {}
    for i, value in enumerate([1.0, 10.0, 100.0]):
        with TowerContext(f"tower{i}", is_training=True, index=i):
            x = tf.placeholder(tf.float32, [1, 1])
            feed[x] = [[value]]
            w = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
            if i == 0:
                tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, l1_regularizer(3.0)(w))
            ones = tf.ones_initializer()
            options = {"kernel_initializer": ones, "kernel_regularizer": l2_regularizer(2.0)}
            FullyConnected("fc", x, 1, activity_regularizer=l1_regularizer(1.0), **options)
            costs.append(regularize_cost_from_collection())
    assert run(costs, feed) == [5.0, 14.0, 104.0]
