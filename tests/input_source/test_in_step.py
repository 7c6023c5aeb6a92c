"""In a deterministic run a step makes its datapoints, which see the weights before it."""

import time

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import BatchQueueInput, QueueInput

from .run_source import FlowOf, hooked, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]
BATCH = [tf.TensorSpec([None], tf.int32, "number")]


@pytest.mark.parametrize(
    "make_source, signature, size",
    [(QueueInput, SIGNATURE, 1), (lambda flow: BatchQueueInput(flow, 3), BATCH, 3)],
)
def test_a_datapoint_sees_the_weights_behind_the_step_before(make_source, signature, size):
    weight = tf.get_variable("weight", [], tf.int32, tf.zeros_initializer())
    read, seen = weight.read_value(), []

    def one_pass(number):
        for _ in range(4):
            time.sleep(0.01)
            seen.append(int(tf.get_default_session().run(read)))
            yield [1]

    source = make_source(FlowOf(one_pass))

    def step():
        (number,) = source.get_input_tensors()
        return [tf.assign_add(weight, tf.reduce_sum(number)).op]

    with running(source, signature, step, deterministic=True) as (_, sess, (op,), callbacks):
        waiting = sess.graph.get_tensor_by_name("input_queue_size:0")
        session = hooked(sess, callbacks)
        for _ in range(4):
            session.run(op)
            time.sleep(0.03)  # for whoever would make something in advance
            assert sess.run(waiting) == 0
    assert seen == [i // size * size for i in range(4 * size)]


@pytest.mark.parametrize("per_tower", [1, 2])
def test_towers_take_their_datapoints_in_their_order(per_tower):
    flow = FlowOf(lambda number: [[i] for i in range(80)])
    source = QueueInput(flow) if per_tower == 1 else BatchQueueInput(flow, per_tower)
    signature = SIGNATURE if per_tower == 1 else BATCH

    def towers():
        return [source.get_input_tensors()[0] for _ in range(4)]

    with running(source, signature, towers, deterministic=True) as (_, sess, fetches, callbacks):
        session = hooked(sess, callbacks)
        found = [np.ravel(session.run(fetches)).tolist() for _ in range(10)]
        assert callbacks[0].state_dict()["count"] == 40 * per_tower
    assert sum(found, []) == list(range(40 * per_tower))


def test_a_run_that_needs_no_data_does_not_make_more():
    source = QueueInput(FlowOf(lambda number: [[i] for i in range(10)]))
    with running(source, SIGNATURE, deterministic=True) as (_, sess, (number,), callbacks):
        session = hooked(sess, callbacks)
        for _ in range(3):
            session.run(sess.graph.get_tensor_by_name("input_queue_size:0"))
        with pytest.raises(RuntimeError, match="not at a step boundary: 1 datapoints were asked"):
            callbacks[0].state_dict()
        assert session.run(number) == 0
        assert callbacks[0].state_dict()["count"] == 1


def test_an_error_of_the_flow_is_that_of_the_step():
    def one_pass(number):
        yield [0]
        raise OSError("disk gone")

    flow = FlowOf(one_pass)
    with running(QueueInput(flow), SIGNATURE, deterministic=True) as (_, sess, (x,), cbs):
        session = hooked(sess, cbs)
        assert session.run(x) == 0
        with pytest.raises(OSError, match="disk gone"):
            session.run(x)
        assert cbs[0].state_dict()["count"] == 1  # as before the step, which got no data


@pytest.mark.parametrize(
    "make_queue",
    [
        lambda: tf.RandomShuffleQueue(8, 4, [tf.int32], shapes=[[]]),
        lambda: tf.FIFOQueue(2, [tf.int32], shapes=[[]]),
    ],
)
def test_a_queue_that_would_wait_for_ever_is_refused(make_queue):
    source = BatchQueueInput(FlowOf(lambda number: [[1]]), 3, make_queue())
    with pytest.raises(ValueError, match="must give and hold the 3 datapoints of a step"):
        with running(source, BATCH, deterministic=True):
            pass
