"""Losses on embeddings against NumPy, and their gradients where a distance is 0."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import symbolic_functions as symbolic

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
    alone = symbolic.contrastive_loss(A, B, Y == 1, margin, scope="mine")
    assert [each.op.name for each in (loss, near, far, alone)] == [
        "constrastive_loss/loss",
        "constrastive_loss/pos-dist",
        "constrastive_loss/neg-dist",
        "mine/loss",
    ]
    means = [np.mean(expected) / 2, np.mean(distance[Y == 1]), np.mean(distance[Y == 0])]
    np.testing.assert_allclose(session().run([loss, near, far]), means, rtol=1e-5)
    np.testing.assert_allclose(session().run(alone), means[0], rtol=1e-5)


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
    assert symbolic.soft_triplet_loss(A, B, C, extra=False).shape.as_list() == []


def pair(loss, **options):
    return lambda x: loss(x, x, tf.zeros([tf.shape(x)[0]], tf.int32), **options)


def triplet(loss, **options):
    return lambda x: loss(x, x, x, extra=False, **options)


@pytest.mark.parametrize(
    "loss, value",
    [
        (pair(symbolic.contrastive_loss, margin=2.0), 2.0),
        (pair(symbolic.siamese_cosine_loss), 0.5),
        (triplet(symbolic.triplet_loss, margin=3.0), 3.0),
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
