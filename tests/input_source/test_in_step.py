"""In a deterministic run a step makes its datapoints, which see the weights before it."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from tensorpack.callbacks import ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import BatchQueueInput, QueueInput
from tensorpack.train import QueueInputTrainer, TrainingInterrupted
from tensorpack.utils import fix_rng_seed
from tests.helpers import TinyModel, config

from .run_source import FlowOf, hooked, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]
BATCH = [tf.TensorSpec([None], tf.int32, "number")]


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
    whole = running(source, signature, lambda: watching.update(source), **attributes)
    with whole as (_, sess, (step,), callbacks):
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


def test_it_is_all_done_on_the_main_thread():
    tape = []

    class Flow(FlowOf):
        def reset_state(self):
            tape.append(("reset", threading.current_thread()))

        def close(self):
            tape.append(("close", threading.current_thread()))

    def one_pass(number):
        try:
            while True:
                tape.append(("take", threading.current_thread()))
                yield [1]
        finally:
            tape.append(("left", threading.current_thread()))

    with running(QueueInput(Flow(one_pass)), SIGNATURE, deterministic=True) as (_, sess, (x,), cbs):
        hooked(sess, cbs).run(x)
    main = threading.current_thread()
    assert tape == [(each, main) for each in ("reset", "take", "left", "close")]


class Slow(FlowOf):
    """Gives three datapoints; for the third it waits until it is closed, or for some seconds."""

    def __init__(self, seconds, heeds_close=True):
        super().__init__(self._one_pass)
        self._seconds, self._heeds_close = seconds, heeds_close
        self._closed = threading.Event()
        self.stopped = None  # when, on the clock time.monotonic()

    def _one_pass(self, number):
        for i in range(3):
            if i == 2:
                self.stopped = time.monotonic()
                os.kill(os.getpid(), signal.SIGTERM)
                self._wait()
            yield [[float(i)] * 2, [0.0] * 2]

    def _wait(self):
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline:
            time.sleep(0.01)
            if self._heeds_close and self._closed.is_set():
                raise OSError("closed while it was read")

    def close(self):
        self._closed.set()


@pytest.fixture
def train(log_dir):
    """Trains on a flow until SIGTERM ends it; returns the step that was saved last, if any."""

    def run(flow):
        fix_rng_seed(1)
        options = {"max_epoch": 2, "deterministic": True}
        made = config([ModelSaver()], dataflow=flow, model=TinyModel(), **options)
        trainer = QueueInputTrainer(made)
        trainer.stop_grace = 4.0
        with pytest.raises(TrainingInterrupted) as caught:
            trainer.train()
        assert caught.value.code == 143
        newest = tf.train.latest_checkpoint(log_dir)
        return None if newest is None else os.path.basename(newest)

    return run


def test_a_datapoint_that_comes_late_is_trained_on_and_saved(train):
    assert train(Slow(seconds=1)) == "model-3"


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize("heeds_close", [True, False])
def test_a_flow_that_gives_nothing_is_closed_and_left(heeds_close, train, capsys):
    """A step without data is not in the state: the run is saved where the last one ended."""
    flow = Slow(seconds=60, heeds_close=heeds_close)
    assert train(flow) == "model-2"
    assert time.monotonic() - flow.stopped < 4.0  # the grace; to build and to train is before it
    said = capsys.readouterr().out
    assert "was not saved" not in said and "The run is saved in" in said
    assert ("the data failed: OSError('closed while" in said) == heeds_close


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
