import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.consumption import ConsumedCount


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


def test_each_tower_and_each_batch_counts():
    queue = tf.FIFOQueue(20, [tf.int32], shapes=[[]])
    enqueue = queue.enqueue_many([list(range(10))])
    consumed = ConsumedCount()
    towers = [consumed.counted([queue.dequeue_many(3)], 3)[0] for _ in range(2)]
    assert consumed.per_run == 6
    with tf.Session() as sess:
        consumed.reset(sess)
        sess.run(enqueue)
        sess.run(towers)
        assert consumed.read(sess) == 6
        sess.run(towers[0])
        assert consumed.read(sess) == 9


def test_the_variable_is_local_and_on_the_cpu():
    with tf.name_scope("QueueInput"), tf.device("/cpu:0"):
        ConsumedCount()
    (variable,) = tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES)
    assert variable.op.name == "QueueInput/consumed"
    assert variable.dtype == tf.int64
    assert variable.device == "/device:CPU:0"
    assert tf.global_variables() == tf.trainable_variables() == []
