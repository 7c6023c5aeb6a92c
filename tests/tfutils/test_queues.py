"""Queues end without leaving anybody waiting."""

import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.queues import QueueControl, all_queues

MAKERS = {
    "fifo": lambda: tf.FIFOQueue(2, [tf.float32], shapes=[[]]),
    "shuffle": lambda: tf.RandomShuffleQueue(2, 1, [tf.float32], shapes=[[]]),
    "padding": lambda: tf.PaddingFIFOQueue(2, [tf.float32], shapes=[[None]]),
}


def element(kind):
    return tf.zeros([3]) if kind == "padding" else tf.zeros([])


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_blocked_producer_is_let_go_by_making_room(kind):
    queue = MAKERS[kind]()
    enqueue, control = queue.enqueue(element(kind)), QueueControl(queue)
    with tf.Session() as sess:
        returned = []

        def produce():
            for _ in range(5):  # two fit
                sess.run(enqueue)
                returned.append(1)

        thread = threading.Thread(target=produce)
        thread.start()
        while control.size(sess) < 2:
            time.sleep(0.001)
        assert control.drain_until(sess, lambda: not thread.is_alive(), timeout=10)
        thread.join()
        assert len(returned) == 5
        control.close(sess)
        control.close(sess, cancel=True)


def test_drain_gives_up_after_its_timeout():
    control = QueueControl(tf.FIFOQueue(2, [tf.float32]))
    with tf.Session() as sess:
        assert control.drain_until(sess, lambda: False, timeout=0.01) is False


def test_drain_leaves_a_queue_that_is_not_full_alone():
    queue = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
    enqueue, control = queue.enqueue(1.0), QueueControl(queue)
    with tf.Session() as sess:
        sess.run(enqueue)
        assert not control.make_room(sess)
        assert control.size(sess) == 1
        sess.run(enqueue)
        assert control.make_room(sess)
        assert control.size(sess) == 1


def test_two_drains_of_a_queue_of_one_do_not_block_each_other():
    queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
    enqueue, controls = queue.enqueue(1.0), [QueueControl(queue), QueueControl(queue)]
    with tf.Session() as sess:
        for _ in range(50):
            sess.run(enqueue)
            threads = [threading.Thread(target=each.make_room, args=(sess,)) for each in controls]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert not any(thread.is_alive() for thread in threads)


def test_closed_queue_wakes_a_blocked_consumer():
    queue = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
    dequeue, control = queue.dequeue(), QueueControl(queue)
    with tf.Session() as sess:
        timer = threading.Timer(0.05, control.close, [sess])
        timer.start()
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(dequeue)
        timer.join()


@pytest.mark.parametrize("cancel", [False, True])
def test_closing_twice_is_harmless(cancel):
    queue = tf.FIFOQueue(2, [tf.float32], shapes=[[]])
    enqueue, control = queue.enqueue(1.0), QueueControl(queue)
    with tf.Session() as sess:
        for _ in range(2):
            control.close(sess, cancel=cancel)
        with pytest.raises(tf.errors.CancelledError):
            sess.run(enqueue)


def test_cancel_returns_at_once_though_a_producer_waits():
    queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
    enqueue, control, errors = queue.enqueue(1.0), QueueControl(queue), []
    with tf.Session() as sess:

        def produce():
            try:
                for _ in range(2):
                    sess.run(enqueue)
            except tf.errors.CancelledError as error:
                errors.append(error)

        thread = threading.Thread(target=produce)
        thread.start()
        while control.size(sess) < 1:
            time.sleep(0.001)
        time.sleep(0.02)  # it waits for room now
        control.close(sess, cancel=True)
        thread.join(5)
        assert len(errors) == 1


def test_finds_every_queue_of_the_graph():
    for make in MAKERS.values():
        make()
    assert len(all_queues(tf.get_default_graph())) == 3
