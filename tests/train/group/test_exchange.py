"""The step's side of an exchange: what it sends and takes, with two alike workers pretended."""

import threading

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.train.group import exchange
from tensorpack.train.group.exchange import Exchange


@pytest.fixture
def twice(monkeypatch):
    """Both workers have the same, so a sum is twice one's own."""
    monkeypatch.setattr(exchange, "all_reduce", lambda tensor, size, key, average=False: 2 * tensor)


def test_a_step_adds_up_what_layers_ask_for(twice):
    both = Exchange(2, 0, average=False)
    weight = tf.get_variable("weight", initializer=[1.0, 2.0])
    step = tf.placeholder(tf.float32, [])
    total = both.add_up(tf.stack([step, 3.0]))
    both.add_up(tf.ones([2, 2], tf.float64))  # nothing depends on it
    product = tf.multiply(total, weight, name="product")
    [(gradient, _)] = both.reduce([(product, weight)])
    assert both.bytes == 4 * (2 + 2 + 2) + 8 * 4
    both.check_run([both.send, {"total": total}])
    both.check_run(weight)
    with pytest.raises(
        RuntimeError,
        match=r"stack:0 is summed .* cannot be fetched outside it\. .* along with the step",
    ):
        both.check_run([weight, {"cost": total + 1}])
    with pytest.raises(RuntimeError, match=r"product:0 is summed .* along with the step"):
        both.check_run(tf.norm(gradient))
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for number in 1.0, 5.0:
            thread = threading.Thread(target=sess.run, args=[both.collect], daemon=True)
            thread.start()
            found = sess.run([total, gradient, both.send], {step: number})
            thread.join(30)
            np.testing.assert_array_equal(found[0], [2 * number, 6])
            np.testing.assert_array_equal(found[1], [4 * number, 24])
        both.leave(sess, -1)
        flags, _ = sess.run(both.collect)
        assert flags.tolist() == [-2, 0]
        sess.run(both.close)
        with pytest.raises((tf.errors.OutOfRangeError, tf.errors.CancelledError)):
            sess.run(total, {step: 1.0})


@pytest.mark.parametrize("dtype, shape", [(tf.int32, [2]), (tf.float32, [None])])
def test_what_cannot_be_added_up(dtype, shape):
    with pytest.raises(ValueError, match="cannot add up x:0, .*needs a known shape"):
        Exchange(2, 0).add_up(tf.placeholder(dtype, shape, name="x"))
