"""Requests come one by one, are computed in batches, and each gets its own answer or error."""

import threading
from concurrent.futures import CancelledError, wait

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.predict import (
    AsyncPredictorBase,
    MultiThreadAsyncPredictor,
    OnlinePredictor,
    PredictorBase,
)
from tests.processes import wait_until


class Gate:
    """Holds up every prediction until it is opened; counts the rows of each."""

    def __init__(self):
        self.opened = threading.Event()
        self.rows = []

    def __call__(self, x):
        self.rows.append(len(x))
        assert self.opened.wait(5)
        return x


@pytest.fixture
def sess():
    # Two held predictions take two threads, of which TensorFlow makes one for each core.
    config = tf.ConfigProto(inter_op_parallelism_threads=4, use_per_session_threads=True)
    with tf.Session(config=config) as session:
        yield session


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def gated(sess, gate):
    """A predictor that doubles, behind the gate."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    held = tf.reshape(tf.py_func(gate, [x], tf.float32), tf.shape(x))
    return OnlinePredictor([x], [held * 2, tf.reduce_sum(held, 1)], sess=sess)


def request(number):
    return [np.float32([number, 1])]


def test_single_requests_are_answered_in_batches(gated, gate):
    with MultiThreadAsyncPredictor([gated], batch_size=3) as predictor:
        assert isinstance(predictor, AsyncPredictorBase)
        first = predictor.put_task(request(0))
        wait_until(lambda: gate.rows)
        futures = [first] + [predictor.put_task(request(i)) for i in range(1, 6)]
        gate.opened.set()
        for number, future in enumerate(futures):
            doubled, total = future.result(5)
            np.testing.assert_array_equal(doubled, [2 * number, 2])
            assert total == number + 1
        assert predictor(request(8)[0])[1] == 9
    assert gate.rows == [1, 3, 2, 1]


def test_a_callback_gets_the_future_under_the_session_of_start(gated, gate, sess):
    gate.opened.set()
    seen = []

    def callback(future):
        seen.append((future.result()[1], tf.get_default_session()))

    with sess.as_default(), MultiThreadAsyncPredictor([gated]) as predictor:
        predictor.put_task(request(4), callback=callback).result(5)
    assert seen == [(5, sess)]


def test_a_wrong_request_fails_alone(gated, gate):
    with MultiThreadAsyncPredictor([gated], batch_size=9) as predictor:
        first = predictor.put_task(request(0))
        wait_until(lambda: gate.rows)
        wrong = predictor.put_task([np.zeros(3)])
        right = predictor.put_task(request(1))
        gate.opened.set()
        assert first.result(5)[1] == 1 and right.result(5)[1] == 2
        with pytest.raises(
            ValueError, match=r"'x:0': the model takes float32 .*gave float64 \[1, 3\]"
        ):
            wrong.result(5)


def test_an_output_without_the_dimension_of_the_batch_is_named(sess):
    x = tf.placeholder(tf.float32, [None])
    predicted = OnlinePredictor([x], [tf.reduce_sum(x, name="total")], sess=sess)
    with MultiThreadAsyncPredictor([predicted]) as predictor:
        with pytest.raises(ValueError, match="'total:0' has the shape .* for a batch of 1"):
            predictor.put_task([1.0]).result(5)


def test_bytes_keep_the_nuls_at_their_end(sess):
    x = tf.placeholder(tf.string, [None])
    with MultiThreadAsyncPredictor([OnlinePredictor([x], [x], sess=sess)]) as predictor:
        for value in (b"ab\0\0", b"\0", b""):
            assert predictor.put_task([value]).result(5) == [value]


def test_close_cancels_what_waits_and_finishes_what_runs(gated, gate):
    predictor = MultiThreadAsyncPredictor([gated], batch_size=1)
    predictor.start()
    running = predictor.put_task(request(0))
    wait_until(lambda: gate.rows)
    waiting = predictor.put_task(request(1))
    closing = threading.Thread(target=predictor.close)
    closing.start()
    with pytest.raises(CancelledError):
        waiting.result(5)
    closing.join(0.1)
    assert closing.is_alive()
    gate.opened.set()
    assert running.result(5)[1] == 1
    closing.join(5)
    predictor.close()
    with pytest.raises(RuntimeError, match="is closed"):
        predictor.put_task(request(2))


def test_requests_are_cancelled_when_the_session_closes(sess):
    x = tf.placeholder(tf.float32, [None])
    nothing = tf.FIFOQueue(1, [tf.float32], [[]])
    predicted = OnlinePredictor([x], [x + nothing.dequeue()], sess=sess)
    seen = []

    def callback(future):
        with pytest.raises(CancelledError):
            future.result()
        seen.append(future)

    with MultiThreadAsyncPredictor([predicted]) as predictor:
        futures = [predictor.put_task([1.0], callback)]
        wait_until(lambda: not predictor._waiting)
        futures += [predictor.put_task([2.0], callback)]
        sess.close()
        futures += [predictor.put_task([3.0], callback)]
        wait(futures, 5)
    assert seen == futures


def test_put_task_waits_for_room_until_close(gated, gate):
    predictor = MultiThreadAsyncPredictor([gated], batch_size=1)
    for number in range(100):
        predictor.put_task(request(number))
    errors = []

    def put():
        try:
            predictor.put_task(request(100))
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    predictor.close()
    thread.join(5)
    assert "is closed" in str(errors[0])


def test_what_it_does_not_take():
    with pytest.raises(TypeError, match="OnlinePredictor, got PredictorBase"):
        MultiThreadAsyncPredictor([PredictorBase()])
