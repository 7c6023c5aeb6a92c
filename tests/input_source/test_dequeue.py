"""What is measured where a step takes datapoints from a queue."""

import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import BatchQueueInput, QueueInput
from tensorpack.input_source.dequeue import ConsumedCount, WaitProbe, wait_probes

from .run_source import FlowOf, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


def probed_queue(capacity=4):
    queue = tf.FIFOQueue(capacity, [tf.int32], shapes=[[]])
    probe = WaitProbe(queue)
    taken = queue.dequeue(name="taken")
    probe.watch([taken])
    return queue, probe, tf.identity(taken, name="step").op


@pytest.mark.timed
def test_the_wait_is_that_of_the_dequeue():
    queue, probe, step = probed_queue()
    enqueue = queue.enqueue(1)
    with tf.Session() as sess:
        sess.run(enqueue)
        probe.read(sess.run([step, probe.fetches])[1])  # what is run first takes longer

        def later():
            time.sleep(0.2)
            sess.run(enqueue)

        thread = threading.Thread(target=later)
        thread.start()
        start = time.monotonic()
        waited = probe.read(sess.run([step, probe.fetches])[1])
        took = time.monotonic() - start
        thread.join()
        assert 0.1 < waited.seconds <= took + 0.01
        sess.run(enqueue)
        assert probe.read(sess.run([step, probe.fetches])[1]).seconds < 0.1


@pytest.mark.parametrize("capacity, expected", [(4, [0.75, 0.5, 0.25, 0.0]), (-1, [None] * 4)])
def test_the_fill_is_that_behind_the_dequeue(capacity, expected):
    queue, probe, step = probed_queue(capacity)
    enqueue = queue.enqueue_many([[1, 2, 3, 4]])
    with tf.Session() as sess:
        sess.run(enqueue)
        fills = [probe.read(sess.run([step, probe.fetches])[1]).fill for _ in range(4)]
    assert fills == expected


def test_it_belongs_to_what_takes_the_data_anyway():
    queue, probe, step = probed_queue()
    assert probe.belongs_to(step)
    assert not probe.belongs_to(tf.no_op())
    assert not WaitProbe(tf.FIFOQueue(1, [tf.int32])).belongs_to(step)
    other = queue.dequeue()
    probe.watch([other])
    assert not probe.belongs_to(step)
    assert probe.belongs_to(tf.group(step, other.op))


@pytest.mark.parametrize(
    "make_source, shape", [(QueueInput, []), (lambda flow: BatchQueueInput(flow, 3), [None])]
)
def test_a_queue_input_has_a_probe_that_takes_no_datapoint_of_its_own(make_source, shape):
    flow = FlowOf(lambda number: [[i] for i in range(6)])
    signature = [tf.TensorSpec(shape, tf.int32, "number")]
    with running(make_source(flow), signature) as (_, sess, (number,), _):
        (probe,) = wait_probes(tf.get_default_graph())
        assert probe.belongs_to(number.op)
        seen = [sess.run([number, probe.fetches])[0].tolist() for _ in range(2)]
        seen.append(sess.run(number).tolist())
    flat = [i for each in seen for i in (each if shape else [each])]
    assert flat == [i % 6 for i in range(len(flat))]


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


def test_the_variable_is_local_and_on_the_cpu():
    with tf.name_scope("QueueInput"), tf.device("/cpu:0"):
        ConsumedCount()
    (variable,) = tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES)
    assert variable.op.name == "QueueInput/consumed"
    assert variable.dtype == tf.int64
    assert variable.device == "/device:CPU:0"
    assert tf.global_variables() == tf.trainable_variables() == []
