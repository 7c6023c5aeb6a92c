"""Tests of random ops whose numbers follow from the step."""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.stateless import draw_by_step, random_ops_of

SHAPE = [200, 50]


@pytest.fixture(autouse=True)
def graph_seed():
    tf.get_default_graph().seed = 7


def drawn(draw, steps, seed=None):
    """Returns what is drawn at these steps, read through another op."""
    step = tf.placeholder(tf.int64, [])
    value = tf.identity(draw)
    target = tf.group(value)
    assert len(draw_by_step(target, step)) == 1
    with tf.Session() as sess:
        return [sess.run([value, target], {step: each})[0] for each in steps]


@pytest.mark.parametrize(
    "make, mean, deviation",
    [
        (lambda: tf.random.uniform(SHAPE), 0.5, 12**-0.5),
        (lambda: tf.random.uniform(SHAPE, -1, 3, tf.float64), 1, 4 * 12**-0.5),
        (lambda: tf.random.normal(SHAPE, 2, 3), 2, 3),
        (lambda: tf.random.truncated_normal(SHAPE), 0, 0.88),
        (lambda: tf.random.uniform(SHAPE, -3, 5, tf.int64), 0.5, (63 / 12) ** 0.5),
        (lambda: tf.random.categorical(tf.math.log([[0.2, 0.3, 0.5]]), 10000), 1.3, 0.61**0.5),
    ],
)
def test_the_same_at_a_step_and_others_at_another(make, mean, deviation):
    first, other, again = drawn(make(), [5, 6, 5])
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(
        [first.mean(), first.std()], [mean, deviation], atol=0.05 * deviation
    )


def test_each_op_draws_its_own_numbers():
    one, two = tf.random.uniform([8]), tf.random.uniform([8], seed=7)
    both = tf.stack([one, two])
    assert len(draw_by_step(both.op, tf.constant(3))) == 2
    with tf.Session() as sess:
        first, second = sess.run(both)
    assert not np.array_equal(first, second)


def test_gradients_and_summaries_see_the_same_mask():
    x = tf.ones([1000])
    kept = tf.nn.dropout(x, rate=0.5)
    (gradient,) = tf.gradients(kept, x)
    target = tf.group(kept, gradient)
    draw_by_step(target, tf.constant(1))
    with tf.Session() as sess:
        values = sess.run([kept, gradient])
        assert np.array_equal(values[0], values[1])
        assert 400 < (values[0] == 0).sum() < 600
        assert np.array_equal(sess.run(kept), values[0])


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_that_is_not_taken_may_draw(taken):
    choice = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [None])
    y = tf.cond(choice, lambda: tf.nn.dropout(x, rate=0.5), lambda: x + 1)
    assert len(random_ops_of(y.op)) == 1
    if not draw_by_step(y.op, tf.constant(1)):
        assert is_tfv2()  # which has a graph of its own for each branch
        return
    with tf.Session() as sess:
        feed = {choice: taken, x: np.ones(50)}
        first, second = sess.run(y, feed), sess.run(y, feed)
    assert np.array_equal(first, second)
    assert set(first) <= ({0.0, 2.0} if taken else {2.0})


def test_each_round_of_a_loop_draws_others():
    _, total = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, y: (i + 1, tf.concat([y, tf.random.uniform([1])], 0)),
        [0, tf.zeros([1])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    behind = total + tf.random.uniform(tf.shape(total))
    assert len(random_ops_of(behind.op)) == 2
    assert len(draw_by_step(behind.op, tf.constant(1))) == 1
    with tf.Session() as sess:
        assert len(set(sess.run(total))) == 4


def test_what_does_not_run_with_the_op_is_left():
    other = tf.random.uniform([2])
    target = tf.no_op()
    assert draw_by_step(target, tf.constant(1)) == []
    assert [op.type for op in random_ops_of(other.op)] == ["RandomUniform"]
