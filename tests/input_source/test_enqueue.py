import threading

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import BatchQueueInput, QueueInput
from tensorpack.input_source.cursor import FlowCursor
from tensorpack.tfutils.summary import MOVING_SUMMARY_OPS_KEY
from tests.contracts.input_source import InputSourceContract, InputStateContract
from tests.helpers import array_at
from tests.processes import wait_until

from .run_source import FlowOf, numbers, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


class TestQueueInput(InputSourceContract):
    size = 5

    def make_source(self):
        return QueueInput(numbers(5))


class TestBatchQueueInput(InputSourceContract):
    size = 2

    def make_source(self):
        return BatchQueueInput(numbers(5), 2)


class TestStateOfQueueInput(InputStateContract):
    in_lockstep = (False, True)

    def make_source(self, flow):
        return QueueInput(flow)


@pytest.mark.slow
class TestStateOfQueueInputWithSmallQueue(InputStateContract):
    in_lockstep = (False, True)

    def make_source(self, flow):
        return QueueInput(flow, tf.FIFOQueue(1, [tf.int32]))


class TestStateOfBatchQueueInput(InputStateContract):
    per_step = 3
    in_lockstep = (False, True)

    def make_source(self, flow):
        return BatchQueueInput(flow, 3)


@pytest.mark.parametrize(
    "make_source, shape, capacity",
    [
        (QueueInput, [], 50),
        (lambda flow: QueueInput(flow, capacity=7), [], 7),
        (lambda flow: BatchQueueInput(flow, 2), [None], 3000),
    ],
)
def test_the_default_queue(make_source, shape, capacity):
    source = make_source(numbers(5))
    assert source.queue is None
    with tf.name_scope("somewhere"):
        source.setup([tf.TensorSpec(shape, tf.int32, "number")])
    op = source.queue.queue_ref.op
    assert (op.name, op.type) == ("input_queue", "FIFOQueueV2")
    assert op.get_attr("capacity") == capacity


def test_the_queue_and_what_belongs_to_it_is_on_the_cpu():
    source = QueueInput(numbers(5))
    with tf.device("/gpu:0"):
        source.setup(SIGNATURE)
        source.get_input_tensors()
    ops = tf.get_default_graph().get_operations()
    devices = {op.type: op.device for op in ops if "Queue" in op.type}
    assert set(devices) >= {"FIFOQueueV2", "QueueEnqueueV2", "QueueDequeueV2", "QueueSizeV2"}
    assert set(devices.values()) == {"/device:CPU:0"}


def test_the_size_of_the_queue_is_summarised_under_exactly_this_name():
    source = QueueInput(numbers(5))
    source.setup(SIGNATURE)
    size = tf.get_default_graph().get_tensor_by_name("input_queue_size:0")
    assert len(tf.get_collection(MOVING_SUMMARY_OPS_KEY)) == 1
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
    enqueue = source.queue.enqueue([tf.constant(1)])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(enqueue)
        assert sess.run(size) == 3.0
        sess.run(tf.get_collection(MOVING_SUMMARY_OPS_KEY))
        (value,) = tf.Summary.FromString(sess.run(summary)).value
        assert (value.tag, value.simple_value) == ("input_queue_size", pytest.approx(3.0))


def test_the_model_gets_the_datapoints_in_order_and_the_flow_repeats(logged):
    flow = numbers(3)
    with running(QueueInput(flow), SIGNATURE) as (_, sess, (number,), _):
        assert [sess.run(number) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert flow.resets == 1
    assert logged == [
        "Setting up the queue for CPU prefetching ...",
        "Starting EnqueueThread ...",
    ]


def test_shapes_come_from_the_signature():
    signature = [
        tf.TensorSpec([None, 2], tf.float32, "image"),
        tf.TensorSpec([], tf.string, "name"),
    ]
    data = DataFromList([[np.zeros([5, 2]), "a\0b"], [np.zeros([1, 2]), b"c"]], shuffle=False)
    with running(QueueInput(data), signature) as (_, sess, (image, name), _):
        assert image.shape.as_list() == [None, 2]
        assert name.shape.as_list() == []
        images, text = sess.run([image, name])
        assert (images.shape, images.dtype, text) == ((5, 2), np.float32, b"a\0b")


def test_each_step_takes_a_batch():
    signature = [tf.TensorSpec([None, 2], tf.float32, "pair"), tf.TensorSpec([2], tf.int32, "n")]
    flow = FlowOf(lambda number: [[[i, -i], i] for i in range(3)], 3)
    with running(BatchQueueInput(flow, 2), signature) as (_, sess, (pair, number), _):
        assert pair.shape.as_list() == [2, 2]
        assert [sess.run(number).tolist() for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]
        assert sess.run(pair).tolist() == [[0, 0], [1, -1]]


def test_a_padding_queue():
    queue = tf.PaddingFIFOQueue(40, [tf.int32], shapes=[[None]])
    flow = FlowOf(lambda number: [[list(range(i))] for i in range(1, 4)])
    signature = [tf.TensorSpec([None, None], tf.int32, "numbers")]
    with running(BatchQueueInput(flow, 3, queue), signature) as (_, sess, (batch,), _):
        assert sess.run(batch).tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 2]]


def test_a_queue_with_names():
    queue = tf.FIFOQueue(5, [tf.int32, tf.float32], names=["b", "a"])
    signature = SIGNATURE + [tf.TensorSpec([], tf.float32, "half")]
    flow = FlowOf(lambda number: [[i, i / 2] for i in range(5)])
    with running(QueueInput(flow, queue), signature) as (_, sess, fetches, _):
        assert [sess.run(fetches) for _ in range(3)] == [[0, 0.0], [1, 0.5], [2, 1.0]]


def test_wrong_arguments():
    with pytest.raises(TypeError, match="a QueueBase such as tf.FIFOQueue, got int"):
        QueueInput(numbers(5), 50)
    with pytest.raises(ValueError, match="Give queue or capacity, not both"):
        QueueInput(numbers(5), tf.FIFOQueue(5, [tf.int32]), capacity=5)
    with pytest.raises(ValueError, match="takes a DataFlow, got list.*DataFromList"):
        QueueInput([[1]])


def test_a_pass_needs_a_batch():
    source = BatchQueueInput(numbers(3), 4)
    source.setup([tf.TensorSpec([None], tf.int32, "number")])
    with pytest.raises(ValueError, match="over 3 datapoints has no batch of 4: take a smaller"):
        source.read_by_pass()
    source.release()


@pytest.mark.parametrize("size", [16, 3000])
@pytest.mark.parametrize("read_only", [False, True])
def test_one_buffer_filled_again_and_again(size, read_only):
    """What is dequeued is what was yielded, also where TensorFlow takes memory without a copy."""
    array = array_at(0, size)
    view = array[:]
    view.setflags(write=not read_only)

    def one_pass(number):
        for count in range(48):
            array[:] = count
            yield [view]

    signature = [tf.TensorSpec([size], tf.float32, "x")]
    with running(QueueInput(FlowOf(one_pass)), signature) as (_, sess, (x,), _):
        queue_size = tf.get_default_graph().get_tensor_by_name("input_queue_size:0")
        wait_until(lambda: sess.run(queue_size) >= 48)
        for count in range(48):
            assert set(sess.run(x)) == {count}


def test_a_state_that_is_asked_for_at_once_is_that_of_the_flow(monkeypatch):
    begin, may_begin = FlowCursor.begin, threading.Event()

    def begin_late(cursor):
        may_begin.wait(20)
        return begin(cursor)

    monkeypatch.setattr(FlowCursor, "begin", begin_late)
    flow = DataFromList([[i] for i in range(7)])
    with running(QueueInput(flow), SIGNATURE) as (_, _, _, callbacks):
        try:
            (state,) = [state for state in (cb.state_dict() for cb in callbacks) if state]
        finally:
            may_begin.set()
    assert (state["count"], state["flow"]["count"]) == (0, 0)
