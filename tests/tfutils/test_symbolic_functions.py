"""Small ops, losses and distributions against NumPy."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import symbolic_functions as symbolic
from tensorpack.tfutils.distributions import (
    CategoricalDistribution,
    Distribution,
    GaussianDistribution,
    ProductDistribution,
)

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


def test_huber_loss_is_quadratic_then_linear(session, delta=2.0):
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


@pytest.mark.parametrize("maxp, expected", [(None, 20.0), (10, 40.0)])
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


rng = np.random.RandomState(0)
A, B, C = np.float32(rng.randn(3, 5, 4))
Y = np.array([1, 0, 1, 0, 0])


def norm(x):
    return np.sqrt(np.sum(x**2, axis=1))


def test_contrastive_loss_and_its_distances(session):
    distance = norm(A - B)
    margin = float(np.median(distance[Y == 0]))  # one pair within, one beyond
    expected = Y * distance**2 + (1 - Y) * np.maximum(0, margin - distance) ** 2
    loss, near, far = symbolic.contrastive_loss(A, B, Y, margin, extra=True)
    names = [f"constrastive_loss/{name}" for name in ("loss", "pos-dist", "neg-dist")]
    assert [x.op.name for x in (loss, near, far)] == names
    means = [np.mean(expected) / 2, np.mean(distance[Y == 1]), np.mean(distance[Y == 0])]
    np.testing.assert_allclose(session().run([loss, near, far]), means, rtol=1e-5)


def test_cosine_loss(session):
    cosine = np.sum(A * B, axis=1) / norm(A) / norm(B)
    loss = symbolic.siamese_cosine_loss(A, B, Y)
    expected = np.mean((cosine - (2 * Y - 1)) ** 2) / 2
    np.testing.assert_allclose(session().run(loss), expected, rtol=1e-5)


def test_triplet_losses_and_their_distances(session):
    near, far = norm(A - B), norm(A - C)
    margin = -float(np.median(near**2 - far**2))
    hard = symbolic.triplet_loss(A, B, C, margin, extra=True)
    soft = symbolic.soft_triplet_loss(A, B, C)
    expected = np.mean(np.maximum(0, near**2 - far**2 + margin))
    softly = np.mean(np.log(1 + np.exp(near - far)))
    found = session().run([*hard, *soft])
    means = [np.mean(near), np.mean(far)]
    np.testing.assert_allclose(found, [expected, *means, softly, *means], rtol=1e-5)
    assert symbolic.triplet_loss(A, B, C, margin).shape.as_list() == []


def pair(loss, **options):
    return lambda x: loss(x, x, tf.zeros([tf.shape(x)[0]], tf.int32), **options)


def triplet(loss, **options):
    return lambda x: loss(x, x, x, extra=False, **options)


@pytest.mark.parametrize(
    "loss, value",
    [
        (pair(symbolic.contrastive_loss, margin=2.0), 2.0),
        (triplet(symbolic.soft_triplet_loss), np.log(2)),
    ],
)
def test_zeros_and_no_pairs_have_finite_losses_and_gradients(session, loss, value):
    x = tf.placeholder(tf.float32, [None, 3])
    cost = loss(x)
    (gradient,) = tf.gradients(cost, x)
    sess = session()
    found, slope = sess.run([cost, gradient], {x: np.zeros([2, 3])})
    np.testing.assert_allclose(found, value, rtol=1e-6)
    assert slope.tolist() == np.zeros([2, 3]).tolist()
    found, slope = sess.run([cost, gradient], {x: np.zeros([0, 3])})
    assert (found, slope.shape) == (0, (0, 3))


PROBABILITIES = np.float32([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])
CLASSES = np.float32([[0, 1, 0], [1, 0, 0]])


def normal_density(x, mean, std):
    return np.sum(-(((x - mean) / std) ** 2) / 2 - np.log(std * np.sqrt(2 * np.pi)), axis=1)


def test_categorical_likelihood_and_entropy(session):
    dist = CategoricalDistribution("digit", 3)
    assert (dist.name, dist.param_dim, dist.sample_dim) == ("digit", 3, 3)
    likelihood = dist.loglikelihood(CLASSES, PROBABILITIES)
    with_one_row = dist.loglikelihood(CLASSES, PROBABILITIES[0])
    entropy = dist.entropy(CLASSES, PROBABILITIES)
    never = dist.loglikelihood(CLASSES[:1], [1.0, 0.0, 0.0])
    assert entropy.op.name == "digit_entropy/entropy"
    found = session().run([likelihood, with_one_row, entropy, never])
    np.testing.assert_allclose(found[0], np.log([0.3, 0.7]), rtol=1e-5)
    np.testing.assert_allclose(found[1], np.log([0.3, 0.2]), rtol=1e-5)
    np.testing.assert_allclose(found[2], -np.mean(np.log([0.3, 0.7])), rtol=1e-5)
    np.testing.assert_allclose(found[3], [np.log(1e-8)], rtol=1e-5)


def test_categorical_samples_and_activation(session):
    tf.set_random_seed(3)
    dist = CategoricalDistribution("digit", 3)
    samples = dist.sample(4000, PROBABILITIES[0])
    certain = dist.sample(2, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    activated = dist.encoder_activation(np.log(PROBABILITIES))
    assert samples.shape.as_list() == [4000, 3]
    values, sure, probabilities = session().run([samples, certain, activated])
    assert set(values.ravel()) == {0, 1} and (values.sum(axis=1) == 1).all()
    np.testing.assert_allclose(values.mean(axis=0), PROBABILITIES[0], atol=0.04)
    assert sure.tolist() == CLASSES.tolist()
    np.testing.assert_allclose(probabilities, PROBABILITIES, rtol=1e-5)


@pytest.mark.parametrize("fixed_std", [True, False])
def test_gaussian_likelihood_follows_its_formula(session, fixed_std):
    dist = GaussianDistribution("style", 2, fixed_std=fixed_std)
    assert (dist.param_dim, dist.sample_dim) == (2 if fixed_std else 4, 2)
    x, mean, log_std = np.float32(np.random.RandomState(0).randn(3, 5, 2))
    raw = mean if fixed_std else np.concatenate([mean, log_std], axis=1)
    theta = dist.encoder_activation(raw)
    expected = normal_density(x, mean, 1.0 if fixed_std else np.exp(log_std))
    found = session().run([dist.loglikelihood(x, theta), dist.entropy(x, theta)])
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    np.testing.assert_allclose(found[1], -np.mean(expected), rtol=1e-4)


def test_gaussian_samples(session):
    tf.set_random_seed(3)
    fixed, free = GaussianDistribution("a", 2), GaussianDistribution("b", 2, fixed_std=False)
    theta = np.float32([1, -2, 0.5, 3])
    a, b = fixed.sample(tf.constant(4000), theta[:2]), free.sample(4000, theta)
    for values, std in zip(session().run([a, b]), ([1, 1], theta[2:])):
        assert values.shape == (4000, 2)
        np.testing.assert_allclose(values.mean(axis=0), [1, -2], atol=0.2)
        np.testing.assert_allclose(values.std(axis=0), std, rtol=0.05)


def test_a_product_is_its_factors_side_by_side(session):
    tf.set_random_seed(3)
    digit, style = CategoricalDistribution("digit", 3), GaussianDistribution("style", 2)
    both = ProductDistribution("codes", [digit, style])
    assert (both.param_dim, both.sample_dim) == (5, 5) and isinstance(both, Distribution)
    style_x, mean = np.float32(np.random.RandomState(0).randn(2, 2, 2))
    x, theta = np.hstack([CLASSES, style_x]), np.hstack([PROBABILITIES, mean])
    parts = [digit.loglikelihood(CLASSES, PROBABILITIES), style.loglikelihood(style_x, mean)]
    entropies = both.entropy(x, theta)
    samples = both.sample(7, theta[0])
    activated = both.encoder_activation(np.hstack([np.log(PROBABILITIES), mean]))
    total, first, second, *found = session().run([both.loglikelihood(x, theta), *parts, *entropies])
    np.testing.assert_allclose(total, first + second, rtol=1e-5)
    np.testing.assert_allclose(found, [-np.mean(first), -np.mean(second)], rtol=1e-5)
    assert [each.op.name for each in entropies] == [
        "codes_entropy/digit_entropy/entropy",
        "codes_entropy/style_entropy/entropy",
    ]
    drawn, valid = session().run([samples, activated])
    assert drawn.shape == (7, 5) and (drawn[:, :3].sum(axis=1) == 1).all()
    np.testing.assert_allclose(valid, theta, rtol=1e-5)
