"""What is measured where a step takes datapoints from a queue."""

import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import BatchQueueInput, QueueInput
from tensorpack.input_source.dequeue import ConsumedCount, WaitProbe, wait_probes
from tensorpack.tfutils.dependency import ancestors

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


@pytest.mark.parametrize(
    "ends, seconds", [([10.5, 12.0], 2.0), ([12.0, 10.5], 2.0), ([9.0], 0.0), ([10.0], 0.0)]
)
def test_the_last_dequeue_counts_and_no_wait_is_negative(ends, seconds):
    _, probe, _ = probed_queue()
    assert probe.read({"begin": 10.0, "ends": ends, "size": 1}).seconds == seconds


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


def test_its_ops_are_in_no_step_that_does_not_ask():
    source = QueueInput(FlowOf(lambda number: [[1]]))
    source.setup(SIGNATURE)
    with tf.control_dependencies([tf.no_op(name="of_the_tower")]):
        (number,) = source.get_input_tensors()
    assert not [op for op in ancestors([number]) if op.type == "Timestamp"]
    (probe,) = wait_probes(tf.get_default_graph())
    # the clock at the begin waits for nothing at all
    assert [op.type for op in ancestors([probe.fetches["begin"]])] == ["Timestamp"]


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
