"""What a step takes from a queue is counted."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.dequeue import ConsumedCount


def test_a_dequeue_counts_once_and_a_failed_one_not():
    queue = tf.FIFOQueue(5, [tf.int32, tf.int32], shapes=[[], []])
    enqueue, close = queue.enqueue([1, 2]), queue.close()
    consumed = ConsumedCount()
    one, two = consumed.counted(queue.dequeue(), 1)
    assert consumed.per_run == 1
    with tf.Session() as sess:
        consumed.reset(sess)
        for _ in range(3):
            sess.run(enqueue)
        assert sess.run([one, two]) == [1, 2]
        assert consumed.read(sess) == 1
        assert sess.run(two) == 2  # a step may need one component only
        assert consumed.read(sess) == 2
        sess.run(close)
        sess.run(one)
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(one)
        assert consumed.read(sess) == 3
        consumed.reset(sess)
        assert consumed.read(sess) == 0
