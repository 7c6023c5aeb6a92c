"""How the enqueue thread begins and ends, whatever ends the run."""

import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlowTerminated, DataFromList
from tensorpack.input_source import QueueInput
from tensorpack.tfutils.queues import QueueClosed
from tensorpack.utils.stopping import Failed, Interrupted, StopRequested
from tests.processes import wait_until

from .run_source import FlowOf, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


def endless(number):
    while True:
        yield [1]


def the_thread():
    return [thread for thread in threading.enumerate() if thread.name == "EnqueueThread"]


def queue_is_full(sess, source):
    size = sess.graph.get_tensor_by_name("input_queue_size:0")
    capacity = source.queue.queue_ref.op.get_attr("capacity")
    return lambda: sess.run(size) >= capacity


@pytest.mark.timed
def test_a_producer_that_waits_for_room_is_let_go(capfd):
    """TensorFlow says nothing about a cancelled enqueue, because none is cancelled."""
    source = QueueInput(FlowOf(endless))
    with running(source, SIGNATURE) as (_, sess, _, _):
        wait_until(queue_is_full(sess, source))
        assert len(the_thread()) == 1
        time.sleep(0.05)  # so that it waits in the enqueue
        start = time.monotonic()
    assert time.monotonic() - start < 1.0
    assert the_thread() == []
    shown = capfd.readouterr().err
    assert "ancelled" not in shown
    assert "CANCELLED" not in shown


@pytest.mark.timed
@pytest.mark.parametrize("capacity", [50, -1])
def test_a_consumer_that_waits_is_woken_by_a_stop(capacity, capfd):
    """The dataflow has nothing to give; a signal comes while the step waits."""
    release = threading.Event()

    def one_pass(number):
        yield [1]
        release.wait(10)
        yield [2]

    source = QueueInput(FlowOf(one_pass), tf.FIFOQueue(capacity, [tf.int32]))
    with running(source, SIGNATURE) as (trainer, sess, (number,), _):
        assert sess.run(number) == 1
        timer = threading.Timer(0.1, lambda: trainer.stop_token.request(Interrupted(2)))
        timer.start()
        start = time.monotonic()
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(number)
        assert time.monotonic() - start < 1.0
        timer.join()
        release.set()  # its datapoint comes too late, and goes nowhere
    assert the_thread() == []
    shown = capfd.readouterr().err
    assert "Skipping cancelled" not in shown
    assert "CANCELLED" not in shown


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_dataflow_that_does_not_come_back_is_named(interrupted, logged, monkeypatch):
    """After a signal it has less time; the other time would outlast what the flow waits for."""
    for name, seconds in [("JOIN", 60), ("INTERRUPTED_JOIN", 60), ("CANCEL", 0.1)]:
        if name == ("INTERRUPTED_JOIN" if interrupted else "JOIN"):
            seconds = 0.1
        monkeypatch.setattr(f"tensorpack.input_source.enqueue_callback._{name}_SECONDS", seconds)
    entered, release = threading.Event(), threading.Event()

    def one_pass(number):
        entered.set()
        release.wait(10)
        yield [1]

    with running(QueueInput(FlowOf(one_pass)), SIGNATURE) as (trainer, _, _, _):
        (thread,) = the_thread()
        assert entered.wait(5)
        if interrupted:
            trainer.stop_token.request(Interrupted(2))
    assert "Cannot join thread EnqueueThread" in logged[-1]
    release.set()
    thread.join(5)
    assert not thread.is_alive()


def failing_at(count, error):
    def one_pass(number):
        for i in range(count):
            yield [i]
        raise error

    return FlowOf(one_pass)


@pytest.mark.timed
@pytest.mark.parametrize(
    "flow, count, error, message",
    [
        (failing_at(3, OSError("disk gone")), 3, OSError, "disk gone"),
        (failing_at(2, DataFlowTerminated("peer gone")), 2, DataFlowTerminated, "peer gone"),
        (failing_at(1, SystemExit(3)), 1, RuntimeError, r"SystemExit\(3.*thread EnqueueThread"),
    ],
)
def test_an_error_is_the_reason_before_the_queue_is_closed(flow, count, error, message):
    with running(QueueInput(flow), SIGNATURE) as (trainer, sess, (number,), _):
        for _ in range(count):
            sess.run(number)
        start = time.monotonic()
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(number)
        reason = trainer.stop_token.reason
        assert time.monotonic() - start < 1.0
        assert isinstance(reason, Failed)
        assert reason.where == "EnqueueThread"
        with pytest.raises(error, match=message):
            raise reason.error
    assert the_thread() == []


@pytest.mark.parametrize("error", [StopRequested(), DataFlowTerminated(), OSError("disk gone")])
def test_a_dataflow_that_ends_because_of_the_stop_is_not_a_failure_and_others_are_heard(error):
    entered, released = threading.Event(), threading.Event()

    def one_pass(number):
        entered.set()
        released.wait(10)
        raise error
        yield

    with running(QueueInput(FlowOf(one_pass)), SIGNATURE) as (trainer, sess, (number,), _):
        assert entered.wait(5)
        trainer.stop_token.request(Interrupted(2))
        released.set()
        wait_until(lambda: the_thread() == [])
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(number)
        assert trainer.stop_token.reason == Interrupted(2)
        late = [reason.error for reason in trainer.stop_token.late_reasons]
        assert late == ([error] if isinstance(error, OSError) else [])


@pytest.mark.parametrize("cancel", [False, True])
def test_a_queue_closed_by_other_code_is_an_error_of_its_own(cancel):
    queue = tf.FIFOQueue(5, [tf.int32])
    close = queue.close(cancel_pending_enqueues=cancel)
    source = QueueInput(FlowOf(endless), queue)
    with running(source, SIGNATURE) as (trainer, sess, (number,), _):
        wait_until(queue_is_full(sess, source))
        closer = threading.Thread(target=lambda: sess.run(close))
        closer.start()
        closer.join(0.1)
        while closer.is_alive():  # a close waits for those who wait to get in
            sess.run(number)
            closer.join(0.1)
        assert trainer.stop_token.wait(5)
        error = trainer.stop_token.reason.error
        assert isinstance(error, QueueClosed)
        assert "EnqueueThread cannot fill 'fifo_queue' any more" in str(error)
    assert the_thread() == []


def test_a_pass_is_closed_in_the_thread():
    tape = []

    def one_pass(number):
        try:
            yield from endless(number)
        finally:
            tape.append(threading.current_thread().name)

    with running(QueueInput(FlowOf(one_pass)), SIGNATURE) as (_, sess, (number,), _):
        sess.run(number)
    assert tape == ["EnqueueThread"]


def test_a_second_consumer_that_is_not_counted_is_noticed():
    source = QueueInput(DataFromList([[i] for i in range(9)]), tf.FIFOQueue(2, [tf.int32]))
    steal = source.queue.dequeue()
    with running(source, SIGNATURE) as (_, sess, (number,), (owner,)):
        for _ in range(20):
            sess.run(steal)
        with pytest.raises(RuntimeError, match="does something else take datapoints out of queue"):
            owner.state_dict()


def test_a_queue_without_order_says_so_once(logged):
    def make():
        queue = tf.RandomShuffleQueue(8, 4, [tf.int32], shapes=[[]])
        return QueueInput(DataFromList([[i] for i in range(9)]), queue)

    with running(make(), SIGNATURE) as (_, sess, (number,), (owner,)):
        for _ in range(3):
            sess.run(number)
            state = owner.state_dict()
        assert state["count"] == 3
        assert len([line for line in logged if "does not keep the order" in line]) == 1
    with tf.Graph().as_default():
        with running(make(), SIGNATURE, states=[state]) as (_, sess, (number,), (owner,)):
            sess.run(number)
            assert owner.state_dict()["count"] == 4
    with tf.Graph().as_default():
        with pytest.raises(RuntimeError, match="does not keep the order of the data"):
            with running(make(), SIGNATURE, states=[state], resume_strictly=True):
                pass


def test_a_queue_without_a_limit_forgets_after_each_epoch():
    def one_pass(number):
        for i in range(60):
            yield [i]
        release.wait(10)

    release = threading.Event()

    class Kept(FlowOf):
        def state_dict(self):
            return {}

    source = QueueInput(Kept(one_pass), tf.FIFOQueue(-1, [tf.int32]))
    with running(source, SIGNATURE) as (trainer, sess, (number,), (owner,)):
        for _ in range(50):
            sess.run(number)
        states = owner._thread.positions._states
        wait_until(lambda: len(states) == 61)
        owner.after_epoch()
        assert [count for count, _ in states] == list(range(50, 61))
        release.set()


def test_the_flow_is_reset_before_the_others_begin():
    """So that it gets the same random stream in each run of a program."""

    class Slow(FlowOf):
        def reset_state(self):
            time.sleep(0.1)
            super().reset_state()

    flow = Slow(endless)
    with running(QueueInput(flow), SIGNATURE):
        assert flow.resets == 1
