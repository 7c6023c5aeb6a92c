"""Queues end, and no thread keeps waiting on one."""

import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.queues import QueueDrain, control_of

MAKERS = {
    "fifo": lambda: tf.FIFOQueue(2, [tf.float32], shapes=[[]]),
    "priority": lambda: tf.PriorityQueue(2, [tf.float32], shapes=[[]]),
    "shuffle": lambda: tf.RandomShuffleQueue(2, 1, [tf.float32], shapes=[[]]),
    "padding": lambda: tf.PaddingFIFOQueue(2, [tf.float32], shapes=[[None]]),
}


def make(kind):
    """Returns a queue with room for two, what enqueues an element, and its control."""
    queue = MAKERS[kind]()
    element = tf.zeros([3]) if kind == "padding" else tf.zeros([])
    components = [tf.zeros([], tf.int64), element] if kind == "priority" else element
    return queue, queue.enqueue(components), control_of(queue)


class Producer(threading.Thread):
    """Enqueues so many elements; waits for room when it has been made."""

    def __init__(self, sess, enqueue, control, count):
        super().__init__()
        self._sess, self._enqueue, self._count = sess, enqueue, count
        self.done, self.error = 0, None
        self.start()
        while control.size(sess) < control.capacity:
            time.sleep(0.001)
        time.sleep(0.02)

    def run(self):
        try:
            for _ in range(self._count):
                self._sess.run(self._enqueue)
                self.done += 1
        except tf.errors.CancelledError as error:
            self.error = error


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_producer_that_waits_for_room_gets_it(kind, capfd):
    _, enqueue, control = make(kind)
    with tf.Session() as sess:
        producer = Producer(sess, enqueue, control, 5)
        with QueueDrain([control], sess):
            producer.join(10)
        assert (producer.done, producer.error) == (5, None)
        assert control.is_closed(sess)
    assert "ancelled" not in capfd.readouterr().err


def test_a_drain_closes_the_queues_when_its_patience_is_over():
    _, enqueue, control = make("fifo")
    with tf.Session() as sess:
        producer = Producer(sess, enqueue, control, 10**9)
        with QueueDrain([control], sess, patience=0.1):
            producer.join(10)
            assert producer.error is not None


def test_a_drain_without_a_thread_closes_the_queues(monkeypatch, capsys):
    def start(thread):
        raise RuntimeError("can't start new thread")

    _, enqueue, control = make("fifo")
    with tf.Session() as sess:
        producer = Producer(sess, enqueue, control, 5)
        monkeypatch.setattr(threading.Thread, "start", start)
        with QueueDrain([control], sess):
            producer.join(10)
            assert producer.error is not None
    assert "No thread can drain the queues" in capsys.readouterr().out


def test_a_drain_ends_though_another_consumer_was_quicker():
    """It waits for an element then, until its end closes the queue."""
    _, enqueue, control = make("fifo")
    with tf.Session() as sess:
        control.size = lambda sess: 2
        with QueueDrain([control], sess):
            time.sleep(0.05)
    assert "QueueDrain" not in [each.name for each in threading.enumerate()]


def test_a_closed_queue_wakes_a_consumer_and_may_be_closed_again():
    queue, enqueue, control = make("fifo")
    dequeue = queue.dequeue()
    with tf.Session() as sess:
        timer = threading.Timer(0.05, control.close, [sess])
        timer.start()
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(dequeue)
        timer.join()
        control.close(sess)
        with pytest.raises(tf.errors.CancelledError):
            sess.run(enqueue)
    control.close(sess)  # the session is closed, too
