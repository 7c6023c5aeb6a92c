"""Distributions against their formulas."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.distributions import (
    CategoricalDistribution,
    Distribution,
    GaussianDistribution,
    ProductDistribution,
)

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
    assert (both.param_dim, both.sample_dim) == (5, 5)
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


class Coin(Distribution):
    """Heads or tails, with one probability."""

    param_dim = sample_dim = 1

    def _loglikelihood(self, x, theta):
        return tf.log(x * theta + (1 - x) * (1 - theta))[:, 0]


def test_a_distribution_of_the_user(session):
    coin = Coin("coin")
    likelihood = session().run(coin.loglikelihood([[1.0], [0.0]], [0.25]))
    np.testing.assert_allclose(likelihood, np.log([0.25, 0.75]), rtol=1e-6)
    assert session().run(coin.encoder_activation([[0.5]])).tolist() == [[0.5]]
    with pytest.raises(NotImplementedError, match="Coin must define _sample"):
        coin.sample(3, [0.5])
