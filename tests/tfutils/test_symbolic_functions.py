"""Tests of the op recipes against NumPy."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import symbolic_functions as symbolic

LOGITS = [[1.0, 3.0, 2.0], [5.0, 1.0, 2.0]]


def test_incorrect_predictions_and_accuracy(session):
    wrong = symbolic.prediction_incorrect(tf.constant(LOGITS), tf.constant([2, 0]))
    wrong_of_two = symbolic.prediction_incorrect(tf.constant(LOGITS), tf.constant([2, 1]), topk=2)
    right = symbolic.accuracy(tf.constant(LOGITS), tf.constant([2, 0]))
    assert [t.op.name for t in [wrong, right]] == ["incorrect_vector", "accuracy"]
    values = session().run([wrong, wrong_of_two, right])
    assert [np.asarray(v).tolist() for v in values] == [[1, 0], [0, 1], 0.5]


@pytest.mark.parametrize(
    "shape, expected", [([None, 2, 3], [None, 6]), ([4, None, 3], [None, None]), ([5], [None, 1])]
)
def test_flattening_keeps_what_is_known(session, shape, expected):
    x = tf.placeholder(tf.float32, shape)
    flat = symbolic.batch_flatten(x)
    assert flat.shape.as_list()[1:] == expected[1:]
    value = np.zeros([size or 2 for size in shape])
    sess = session()
    assert sess.run(flat, {x: value}).shape == (value.shape[0], value[0].size)
    assert sess.run(symbolic.flatten(x), {x: value}).shape == (value.size,)


def balanced(probability, label):
    positive = np.mean(label)
    losses = (1 - positive) * label * np.log(probability)
    losses += positive * (1 - label) * np.log(1 - probability)
    return -np.mean(losses)


def test_class_balanced_losses_follow_their_formula(session):
    logits = np.float32([[2.0, -1.0], [0.5, -3.0]])
    label = np.int32([[1, 0], [0, 0]])
    probability = 1 / (1 + np.exp(-logits))
    a = symbolic.class_balanced_cross_entropy(tf.constant(probability), tf.constant(label))
    b = symbolic.class_balanced_sigmoid_cross_entropy(tf.constant(logits), tf.constant(label))
    none = symbolic.class_balanced_sigmoid_cross_entropy(tf.constant(logits), tf.zeros([2, 2]))
    assert a.op.name == "cross_entropy_loss"
    expected = balanced(probability, label)
    np.testing.assert_allclose(session().run([a, b, none]), [expected, expected, 0], rtol=1e-5)


def test_print_stat_passes_its_input_on_and_prints_it(session, capfd):
    x = symbolic.print_stat(tf.constant([3, 4], name="x"))
    assert session().run(x).tolist() == [3, 4]
    assert "x: [2][3.5][3.53553" in capfd.readouterr().err


def test_rms_is_named_after_its_input(session):
    with tf.name_scope("scope"):
        x = tf.constant([3.0, 4.0], name="x")
        named, unnamed = symbolic.rms(x, name="mine"), symbolic.rms(x)
    assert (named.op.name, unnamed.op.name) == ("scope/mine", "scope/x/rms")
    np.testing.assert_allclose(session().run([named, unnamed]), [12.5**0.5] * 2, rtol=1e-6)


@pytest.mark.parametrize("delta", [1, 2.0])
def test_huber_loss_is_quadratic_then_linear(session, delta):
    x = np.float32([-5, -1.5, -0.5, 0, 1, 3])
    expected = np.where(np.abs(x) <= delta, x**2 / 2, delta * (np.abs(x) - delta / 2))
    feed = tf.constant(x)
    loss = symbolic.huber_loss(feed, delta)
    assert loss.op.name == "huber_loss"
    found, gradient = session().run([loss, tf.gradients(loss, feed)[0]])
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(gradient, np.clip(x, -delta, delta))


def test_scalar_var_is_a_float_variable_with_a_summary(session):
    with tf.variable_scope("a"):
        plain = symbolic.get_scalar_var("plain", 1)
        summed = symbolic.get_scalar_var("summed", 2.5, summary=True, trainable=True)
    assert tf.trainable_variables() == [summed]
    sess = session()
    assert sess.run([plain, summed]) == [1.0, 2.5]
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
    (value,) = tf.Summary.FromString(sess.run(summary)).value
    assert (value.tag, value.simple_value) == ("a/summed-summary", 2.5)


@pytest.mark.parametrize("maxp, expected", [(None, 20.0), (1, 20.0), (10, 40.0)])
def test_psnr_in_decibels(session, maxp, expected):
    value = symbolic.psnr(tf.fill([2, 2], 0.5), tf.fill([2, 2], 0.6), maxp)
    assert value.op.name == "psnr"
    np.testing.assert_allclose(session().run(value), expected, rtol=1e-5)


def test_saliency_is_the_gradient_of_the_largest_output(session):
    x = tf.constant([[1.0, 2.0], [3.0, 1.0]])
    saliency = symbolic.saliency_map(x * [3.0, 5.0], x)
    assert session().run(saliency).tolist() == [[0, 5], [3, 0]]


def test_shapeless_placeholder_opens_dimensions(session):
    x = tf.zeros([1, 2, 3])
    opened = symbolic.shapeless_placeholder(x, [0, 2], name="open")
    assert opened.shape.as_list() == [None, 2, None]
    sess = session()
    assert sess.run(opened).shape == (1, 2, 3)
    assert sess.run(opened, {opened: np.ones([4, 2, 1])}).shape == (4, 2, 1)


def test_guided_relus_pass_positive_gradients_only(session):
    x = tf.constant([1.0, 1.0, -1.0, -1.0])
    factors = tf.constant([2.0, -2.0, 2.0, -2.0])
    for _ in range(2):
        with symbolic.guided_relu():
            guided = tf.nn.relu(x)
    plain = tf.nn.relu(x)
    values = session().run([guided] + [tf.gradients(y * factors, x)[0] for y in (guided, plain)])
    assert [each.tolist() for each in values] == [[1, 1, 0, 0], [2, 0, 0, 0], [2, -2, 0, 0]]
