"""The scale of a cost: where it goes, how it adapts, and what a bad step leaves untouched."""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.gradproc import GlobalNormClip, MapGradient
from tensorpack.tfutils.loss_scale import LossScaleOptimizer
from tensorpack.tfutils.optimizer import AccumGradOptimizer, apply_grad_processors


def sgd():
    return tf.train.GradientDescentOptimizer(1.0)


@pytest.fixture(autouse=True)
def resources():
    """The variables that TensorFlow 2 takes into tf.cond; on TensorFlow 1 ref variables."""
    with tf.variable_scope("", use_resource=True if is_tfv2() else None):
        yield


@pytest.fixture
def trained(session):
    """Trains v, 0 at first, on `v * factor`: returns its values and the scale's after each step."""

    def train(optimizer, factors):
        v, factor = tf.get_variable("v", initializer=0.0), tf.placeholder(tf.float32, [])
        step = optimizer.apply_gradients(optimizer.compute_gradients(v * factor), name="train_op")
        assert step.name == "train_op"
        names = {var.op.name: var for var in tf.global_variables()}
        state = [v, names["loss_scale/scale"], names["loss_scale/good_steps"]]
        sess, states = session(), []
        for value in factors:
            sess.run(step, {factor: value})
            states.append([float(value) for value in sess.run(state)])
        return states

    return train


def test_gradients_have_their_size_and_are_computed_from_the_scaled_cost(session):
    v = tf.get_variable("v", initializer=3.0)
    seen = []

    @tf.custom_gradient
    def look(x):
        def gradient(above):
            seen.append(above)
            return above

        return tf.identity(x), gradient

    optimizer = LossScaleOptimizer(sgd(), initial_scale=1024.0)
    unused = tf.get_variable("unused", initializer=0.0)
    grads = optimizer.compute_gradients(look(v * v), [v, unused])
    assert grads[1] == (None, unused)
    sess = session()
    assert sess.run([seen[0], grads[0][0]]) == [1024.0, 6.0]


def test_the_scale_doubles_after_good_steps_and_halves_at_a_bad_one(trained):
    optimizer = LossScaleOptimizer(sgd(), initial_scale=8.0, growth_steps=2)
    states = trained(optimizer, [1, 1, 1, np.inf, 1, np.nan, np.nan, 1, 1])
    scales = [(8, 1), (16, 0), (16, 1), (8, 0), (8, 1), (4, 0), (2, 0), (2, 1), (4, 0)]
    assert [(scale, good) for _, scale, good in states] == scales
    assert states[-1][0] == -6.0


def test_a_variable_without_a_gradient_is_left_alone(session):
    v, unused = tf.get_variable("v", initializer=3.0), tf.get_variable("unused", initializer=5.0)
    step = LossScaleOptimizer(sgd()).minimize(v * v, var_list=[v, unused])
    sess = session()
    sess.run(step)
    assert sess.run([v, unused]) == [-3.0, 5.0]


def test_two_in_one_graph_have_a_scale_each(session):
    v, w = (tf.get_variable(name, initializer=0.0) for name in "vw")
    steps = [
        LossScaleOptimizer(sgd(), 4.0).minimize(v * 1.0, var_list=[v]),
        LossScaleOptimizer(sgd(), 8.0).minimize(w * np.inf, var_list=[w]),
    ]
    names = {var.op.name: var for var in tf.global_variables()}
    sess = session()
    sess.run(steps)
    assert sess.run([names["loss_scale/scale"], names["loss_scale_1/scale"]]) == [4.0, 4.0]
    assert sess.run([v, w]) == [-1.0, 0.0]


def test_the_scale_has_bounds(trained):
    optimizer = LossScaleOptimizer(sgd(), initial_scale=2.0**24, growth_steps=1)
    states = trained(optimizer, [1] + [np.nan] * 30)
    assert (states[0][1], states[-1][1]) == (2.0**24, 1.0)


def test_a_bad_step_changes_neither_variables_nor_slots(session):
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    factor = tf.placeholder(tf.float32, [2])
    processed = []
    clipped = apply_grad_processors(
        tf.train.AdamOptimizer(0.1),
        [MapGradient(lambda g: (processed.append(g), g)[1]), GlobalNormClip(1.0)],
    )
    optimizer = LossScaleOptimizer(clipped)
    train = optimizer.apply_gradients(optimizer.compute_gradients(tf.reduce_sum(v * factor)))
    sess = session()
    everything = [var for var in tf.global_variables() if "loss_scale" not in var.op.name]
    assert len(everything) == 5  # v, its two moments, two powers
    sess.run(train, {factor: [1, 2]})
    before = sess.run(everything)
    _, seen = sess.run([train, processed], {factor: [1, np.inf]})
    np.testing.assert_equal(sess.run(everything), before)
    assert seen[0].tolist() == [0.0, 0.0]  # as a moving average of it would keep the infinity
    sess.run(train, {factor: [1, 2]})
    assert not np.array_equal(sess.run(v), before[0])


def test_sparse_gradients(session):
    table = tf.get_variable("table", initializer=[[1.0], [2.0], [3.0]])
    factor = tf.placeholder(tf.float32, [])
    optimizer = LossScaleOptimizer(sgd(), initial_scale=4.0)
    grads = optimizer.compute_gradients(tf.reduce_sum(tf.gather(table, [0, 2])) * factor)
    assert isinstance(grads[0][0], tf.IndexedSlices)
    train = optimizer.apply_gradients(grads)
    sess = session()
    sess.run(train, {factor: np.inf})
    sess.run(train, {factor: 1})
    assert sess.run(table).ravel().tolist() == [0.0, 2.0, 2.0]


def test_accumulated_gradients_count_a_bad_step_as_zero(trained):
    optimizer = LossScaleOptimizer(AccumGradOptimizer(sgd(), 2), initial_scale=4.0)
    states = trained(optimizer, [np.nan, 1, 1, 1, 1, np.nan, 1, 1])
    assert [v for v, _, _ in states] == [0, -1, -1, -3, -3, -3, -3, -5]


def test_wrong_numbers():
    with pytest.raises(ValueError, match="initial_scale .* at least 1 and of at most 1"):
        LossScaleOptimizer(sgd(), 0.5)
