"""What losses refuse, and the ends of episodes; test_learning.py has their values."""

import losses
import numpy as np

from tensorpack.compat import tfv1 as tf


def test_nothing_follows_an_end_whatever_the_network_says():
    p, over = tf.fill([2, 51], np.float32(np.nan)), tf.constant([True, True])
    projected = losses.project(p, tf.constant([1.0, 50.0]), over, 0.99)
    target = losses.td_target(p[:, 0], tf.constant([1.0, 0.5]), over, 0.99)
    with tf.Session() as sess:
        found, target = sess.run([projected, target])
    assert target.tolist() == [1.0, 0.5]
    np.testing.assert_allclose(found @ np.linspace(-10, 10, 51), [1.0, 10.0], rtol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-5)
