"""What waits in the queue is dropped, and a new pass follows, whose position is known."""

from contextlib import suppress

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import QueueInput, StagingInput
from tensorpack.utils.stopping import StopRequested
from tests.input_source.run_source import FlowOf, hooked, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


def tens():
    """Passes of 1000 numbers, from 0 on in the first, from 1000 on in the second."""
    return FlowOf(lambda number: [[number * 1000 + i] for i in range(1000)])


@pytest.mark.parametrize("deterministic", [False, True])
def test_steps_take_the_new_pass(deterministic):
    source = QueueInput(tens())
    with running(source, SIGNATURE, deterministic=deterministic) as (_, sess, (x,), callbacks):
        session = hooked(sess, callbacks)
        assert [session.run(x) for _ in range(3)] == [0, 1, 2]
        source.refill_queue()
        assert [session.run(x) for _ in range(3)] == [1000, 1001, 1002]
        source.refill_queue()
        source.refill_queue()
        assert session.run(x) == 3000
        assert callbacks[0].state_dict()["count"] == 7


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_resumed_run_continues_in_the_new_pass(steps):
    def make():
        return QueueInput(DataFromList([[i] for i in range(100)], shuffle=False))

    source = make()
    with running(source, SIGNATURE) as (_, sess, (x,), callbacks):
        session = hooked(sess, callbacks)
        assert [session.run(x) for _ in range(3)] == [0, 1, 2]
        source.refill_queue()
        assert [session.run(x) for _ in range(steps)] == list(range(steps))
        states = [each.state_dict() for each in callbacks]
    attributes = {"states": states, "resume_strictly": True}
    with tf.Graph().as_default():
        with running(make(), SIGNATURE, **attributes) as (_, sess, (x,), callbacks):
            assert hooked(sess, callbacks).run(x) == steps


def test_a_flow_without_a_state_cannot_be_counted_to_any_more():
    source = QueueInput(tens())
    with running(source, SIGNATURE) as (_, sess, (x,), callbacks):
        source.refill_queue()
        hooked(sess, callbacks).run(x)
        states = [each.state_dict() for each in callbacks]
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="cannot continue where it was"):
        with running(QueueInput(tens()), SIGNATURE, states=states, resume_strictly=True):
            pass


def test_an_error_of_the_new_pass_is_heard():
    def one_pass(number):
        if number:
            raise KeyError("gone")
        return [[i] for i in range(100)]

    source = QueueInput(FlowOf(one_pass))
    with running(source, SIGNATURE) as (trainer, sess, (x,), callbacks):
        hooked(sess, callbacks).run(x)
        with suppress(StopRequested):  # if the error comes while it waits
            source.refill_queue()
        trainer.stop_token.wait(5)
        assert isinstance(trainer.stop_token.reason.error, KeyError)


def test_when_it_cannot_be_refilled():
    source = QueueInput(tens())
    with pytest.raises(RuntimeError, match=r"refill_queue\(\) comes after setup"):
        source.refill_queue()
    with running(StagingInput(source), SIGNATURE):
        with pytest.raises(RuntimeError, match="a StagingInput keeps datapoints"):
            source.refill_queue()
    with tf.Graph().as_default():
        queue = tf.RandomShuffleQueue(9, 3, [tf.int32], [[]], name="shuffled")
        source = QueueInput(tens(), queue)
        with running(source, SIGNATURE):
            with pytest.raises(RuntimeError, match="queue 'shuffled' keeps datapoints"):
                source.refill_queue()


def test_before_the_training_there_is_nothing_to_refill():
    source = QueueInput(tens())
    (owner,) = source.setup(SIGNATURE)
    source.refill_queue()
    assert (source.ds.passes, owner.state_dict()["count"]) == (0, 0)
