"""Datapoints are made one by one; in a deterministic run, each sees the weights of its step."""

import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import BatchQueueInput, QueueInput
from tensorpack.input_source.lockstep import Gate
from tensorpack.utils.stopping import Finished, Interrupted

from .running import FlowOf, hooked, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]
BATCH = [tf.TensorSpec([None], tf.int32, "number")]


def the_threads():
    return [each for each in threading.enumerate() if each.name == "EnqueueThread"]


def test_a_gate_lets_through_what_was_allowed():
    gate, made = Gate(), []
    thread = threading.Thread(target=lambda: [made.append(1) for _ in iter(gate.enter, False)])
    thread.start()
    assert gate.wait_idle(5)
    assert made == []
    gate.allow(3)
    assert gate.wait_idle(5)
    assert (len(made), gate.granted) == (3, 3)
    gate.allow(1)
    assert gate.wait_idle(5)
    gate.close()
    thread.join(5)
    assert gate.closed
    assert len(made) == 4


def test_a_gate_is_not_idle_before_the_thread_is_there_and_while_it_works():
    gate = Gate()
    assert not gate.wait_idle(0)
    gate.allow(1)
    assert gate.enter()
    assert not gate.wait_idle(0)


def test_a_closed_gate_lets_nothing_through():
    gate = Gate()
    gate.allow(2)
    gate.close()
    assert not gate.enter()


class Watching:
    """Makes numbers, and notes what a variable is when each is made."""

    def __init__(self):
        self.weight = tf.get_variable("weight", [], tf.int32, tf.zeros_initializer())
        self._read = self.weight.read_value()
        self.seen = []
        self.flow = FlowOf(self._one_pass)

    def update(self, source):
        """A step: adds the datapoints to the variable."""
        (number,) = source.get_input_tensors()
        return [tf.assign_add(self.weight, tf.reduce_sum(number)).op]

    def _one_pass(self, number):
        for _ in range(4):
            time.sleep(0.01)
            self.seen.append(int(tf.get_default_session().run(self._read)))
            yield [1]


def run_steps(make_source, signature, steps, deterministic):
    """Returns the weights that the datapoints saw, and the sizes of the queue between steps."""
    watching = Watching()
    source, sizes = make_source(watching.flow), []
    attributes = {"deterministic": deterministic}
    with running(source, signature, lambda: watching.update(source), **attributes) as (
        _,
        sess,
        (step,),
        callbacks,
    ):
        size = sess.graph.get_tensor_by_name("input_queue_size:0")
        session = hooked(sess, callbacks)
        for _ in range(steps):
            session.run(step)
            time.sleep(0.03)  # for whoever would make something in advance
            sizes.append(int(sess.run(size)))
        return watching.seen, sizes


def test_a_datapoint_sees_the_weights_behind_the_step_before():
    seen, sizes = run_steps(QueueInput, SIGNATURE, 10, True)
    assert seen == list(range(10))
    assert sizes == [0] * 10


def test_without_lockstep_it_is_made_in_advance():
    seen, _ = run_steps(QueueInput, SIGNATURE, 10, False)
    assert seen[:10] != list(range(10))


def test_a_batch_is_made_as_a_whole():
    seen, sizes = run_steps(lambda flow: BatchQueueInput(flow, 3), BATCH, 4, True)
    assert seen == [0] * 3 + [3] * 3 + [6] * 3 + [9] * 3
    assert sizes == [0] * 4


def test_two_towers_take_two():
    watching = Watching()
    source = QueueInput(watching.flow)

    def both():
        numbers = [source.get_input_tensors()[0] for _ in range(2)]
        return [tf.assign_add(watching.weight, tf.add_n(numbers)).op]

    with running(source, SIGNATURE, both, deterministic=True) as (_, sess, step, callbacks):
        session = hooked(sess, callbacks)
        for _ in range(3):
            session.run(step)
        assert callbacks[0].state_dict()["count"] == 6
    assert watching.seen == [0, 0, 2, 2, 4, 4]


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


@pytest.mark.timed
def test_what_was_allowed_is_delivered_after_a_stop(capfd):
    entered, release = threading.Event(), threading.Event()

    def one_pass(number):
        for i in range(10):
            entered.set()
            release.wait(10)
            yield [i]

    flow = FlowOf(one_pass)
    with running(QueueInput(flow), SIGNATURE, deterministic=True) as (trainer, sess, (x,), cbs):

        def stop():
            entered.wait(5)
            trainer.stop_token.request(Interrupted(2))
            release.set()

        stopper = threading.Thread(target=stop)
        stopper.start()
        assert hooked(sess, cbs).run(x) == 0  # which waits while the run is asked to stop
        stopper.join(5)
        state = cbs[0].state_dict()
        assert state["count"] == 1
        assert len(the_threads()) == 1
        start = time.monotonic()
    assert time.monotonic() - start < 1.0
    assert the_threads() == []
    assert "ancelled" not in capfd.readouterr().err


def test_a_stop_between_two_steps_begins_nothing():
    made = []

    def one_pass(number):
        for i in range(10):
            made.append(i)
            yield [i]

    flow = FlowOf(one_pass)
    with running(QueueInput(flow), SIGNATURE, deterministic=True) as (trainer, sess, (x,), cbs):
        hooked(sess, cbs).run(x)
        trainer.stop_token.request(Finished())
        time.sleep(0.05)
        assert cbs[0].state_dict()["count"] == 1
    assert made == [0]
    assert the_threads() == []


def test_an_error_of_the_flow_reaches_the_step():
    def one_pass(number):
        yield [0]
        raise OSError("disk gone")

    flow = FlowOf(one_pass)
    with running(QueueInput(flow), SIGNATURE, deterministic=True) as (trainer, sess, (x,), cbs):
        session = hooked(sess, cbs)
        assert session.run(x) == 0
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(x)
        assert str(trainer.stop_token.reason.error) == "disk gone"


def test_the_training_waits_until_the_data_is_where_it_begins():
    def slow(number):
        for i in range(6):
            time.sleep(0.02)
            yield [i]

    state = {"count": 5, "flow": None, "seeded": True, "callback": False}
    source = QueueInput(FlowOf(slow))
    with running(source, SIGNATURE, states=[state], deterministic=True) as (_, sess, (x,), cbs):
        assert cbs[0]._thread.gate.wait_idle(0)
        assert hooked(sess, cbs).run(x) == 5


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
