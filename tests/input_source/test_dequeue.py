"""What is measured where a step takes datapoints from a queue."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import BatchQueueInput, QueueInput
from tensorpack.input_source.dequeue import ConsumedCount, wait_clocks

from .run_source import FlowOf, running


@pytest.mark.parametrize(
    "make_source, shape", [(QueueInput, []), (lambda flow: BatchQueueInput(flow, 3), [None])]
)
def test_the_clocks_of_a_step_take_no_datapoint_of_their_own(make_source, shape):
    flow = FlowOf(lambda number: [[i] for i in range(6)])
    signature = [tf.TensorSpec(shape, tf.int32, "number")]
    source = make_source(flow)

    def fetches():
        (number,) = source.get_input_tensors()
        assert wait_clocks(tf.no_op(), fed=False) == []
        return number, wait_clocks(number.op, fed=False)

    with running(source, signature, fetches) as (_, sess, (number, clocks), _):
        assert len(clocks) == 2
        seen = [sess.run([number, clocks])[0].tolist() for _ in range(2)]
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
