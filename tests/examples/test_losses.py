"""Returns, targets and losses, against the same by hand or by numpy; see also test_learning.py."""

import losses
import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf

Q_NEXT = [[10.0, 20.0], [30.0, 5.0], [np.nan, 7.0]]
ACTION = [1, 0, 1]
REWARD = [1.0, -1.0, 0.5]
OVER = [False, False, True]


def run(tensor):
    with tf.Session() as sess:
        return sess.run(tensor)


def test_a_target_is_the_reward_and_what_follows_unless_nothing_does():
    best = tf.reduce_max(tf.constant(Q_NEXT), 1)
    target = losses.td_target(best, tf.constant(REWARD), tf.constant(OVER), 0.5)
    np.testing.assert_allclose(run(target), [1 + 0.5 * 20, -1 + 0.5 * 30, 0.5])


def test_rewards_are_clipped_one_by_one_then_discounted():
    rewards = [[5.0, 0.5, -7.0], [0.0, 2.0, 0.0]]
    found = run(losses.n_step_return(tf.constant(rewards), 0.9))
    np.testing.assert_allclose(found, [1 + 0.9 * 0.5 - 0.81, 0.9], rtol=1e-6)
    assert run(losses.n_step_return(tf.constant([5.0, -0.5]), 0.9)).tolist() == [1.0, -0.5]


def test_a_bad_rank_names_op_and_argument():
    reward, over = tf.constant(REWARD), tf.constant(OVER)
    with pytest.raises(ValueError, match="reward must have rank 1"):
        losses.td_target(reward, tf.constant(Q_NEXT), over, 0.5)
    with pytest.raises(ValueError, match=r"action_value: q must have rank 2 or 3.*\(3,\)"):
        losses.action_value(reward, tf.constant(ACTION))


def test_the_log_policy_is_clipped():
    q, action = tf.constant([[0.0, 5.0], [0.0, 5.0]]), tf.constant([0, 1])
    with tf.Session() as sess:
        bonus = sess.run(losses.munchausen_bonus(q, action))
    np.testing.assert_allclose(bonus, [-0.9, 0.0], atol=1e-6)


def test_nothing_follows_an_end_whatever_the_network_says():
    p = tf.fill([2, 51], np.float32(np.nan))
    projected = losses.project(p, tf.constant([1.0, 50.0]), tf.constant([True, True]), 0.99)
    with tf.Session() as sess:
        found = sess.run(projected)
    np.testing.assert_allclose(found @ np.linspace(-10, 10, 51), [1.0, 10.0], rtol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-5)
