"""Targets and loss of Q-learning: values by hand, and where the gradient may flow."""

import numpy as np
import pytest
import td

from tensorpack.compat import tfv1 as tf

Q = [[1.0, 2.0], [4.0, 3.0], [0.5, 0.0]]
Q_NEXT = [[10.0, 20.0], [30.0, 5.0], [np.nan, 7.0]]
Q_SELECTOR = [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
ACTION = [1, 0, 1]
REWARD = [1.0, -1.0, 0.5]
OVER = [False, False, True]


def run(tensor):
    with tf.Session() as sess:
        return sess.run(tensor)


def q_next():
    return tf.constant(Q_NEXT)


def test_qlearning_takes_the_best_next_value():
    target = td.qlearning_target(q_next(), tf.constant(REWARD), tf.constant(OVER), 0.5)
    np.testing.assert_allclose(run(target), [1 + 0.5 * 20, -1 + 0.5 * 30, 0.5])


def test_double_qlearning_takes_the_value_of_the_selectors_choice():
    target = td.double_qlearning_target(
        q_next(), tf.constant(Q_SELECTOR), tf.constant(REWARD), tf.constant(OVER), 0.5
    )
    np.testing.assert_allclose(run(target), [1 + 0.5 * 10, -1 + 0.5 * 30, 0.5])


def test_no_gradient_flows_through_a_target():
    values, selector, reward = tf.constant(Q), tf.constant(Q_SELECTOR), tf.constant(REWARD)
    over = tf.constant([False, False, True])
    for target in [
        td.qlearning_target(values, reward, over, 0.5),
        td.double_qlearning_target(values, selector, reward, over, 0.5),
    ]:
        assert tf.gradients(target, [values, selector, reward]) == [None, None, None]


def test_a_bad_rank_names_op_and_argument():
    with pytest.raises(ValueError, match=r"qlearning_target: q_next must have rank 2.*\(3,\)"):
        td.qlearning_target(tf.constant(REWARD), tf.constant(REWARD), tf.constant(OVER), 0.5)
    with pytest.raises(ValueError, match="reward must have rank 1"):
        td.qlearning_target(tf.constant(Q), tf.constant(Q), tf.constant(OVER), 0.5)
    with pytest.raises(ValueError, match="td_loss: target must have rank 1"):
        td.td_loss(tf.constant(Q), tf.constant(ACTION), tf.constant(1.0))


def test_a_discount_above_one_and_an_unknown_number_of_actions_are_refused():
    with pytest.raises(ValueError, match="discount must be in"):
        td.qlearning_target(tf.constant(Q), tf.constant(REWARD), tf.constant(OVER), 99.0)
    with pytest.raises(ValueError, match="number of actions must be known"):
        td.action_value(tf.placeholder(tf.float32, [None, None]), tf.constant(ACTION))
