"""Datasets, and dataflows as such, in real runs."""

import os
import signal
import threading

import numpy as np
import pytest

from tensorpack.callbacks import Inferencer, InferenceRunner
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFlowTerminated, DataFromList
from tensorpack.graph_builder import InputDesc, ModelDesc
from tensorpack.input_source import StagingInput, TFDatasetInput
from tensorpack.train import DataEnded, SimpleTrainer, TrainingInterrupted
from tests import helpers
from tests.callbacks.driver import when
from tests.contracts.input_source import InputSourceContract
from tests.helpers import TinyModel
from tests.input_source.run_source import FlowOf, hooked, numbers, running

NUMBER = [tf.TensorSpec([], tf.int32, "number")]
X = np.linspace(-1, 1, 8).astype(np.float32)


class TestTFDatasetInputOfAFlow(InputSourceContract):
    size = 3

    def make_source(self):
        return TFDatasetInput(DataFromList([[np.zeros((2, 3), np.float32), np.zeros(2, int)]] * 3))


class TestTFDatasetInputOfADataset(InputSourceContract):
    @pytest.fixture(autouse=True)
    def make_dataset(self, fresh_graph):
        parts = tf.zeros([4, 2, 3]), tf.zeros([4, 2], tf.int32)
        self.dataset = tf.data.Dataset.from_tensor_slices(parts)

    def make_source(self):
        return TFDatasetInput(self.dataset)


def read(source, steps, signature=NUMBER):
    """What so many steps get."""
    with running(source, signature) as (_, sess, tensors, callbacks):
        session = hooked(sess, callbacks)
        return [session.run(tensors) for _ in range(steps)]


@pytest.mark.parametrize("named", [False, True])
def test_components_are_found_by_order_or_by_name(named):
    signature = [tf.TensorSpec([], tf.int32, "b"), tf.TensorSpec([None], tf.float32, "a")]
    parts = tf.constant([1, 2]), tf.ones([2, 3])
    parts = {"a": parts[1], "b": parts[0]} if named else parts
    found = read(TFDatasetInput(tf.data.Dataset.from_tensor_slices(parts)), 2, signature)
    assert [number for number, _ in found] == [1, 2]
    assert found[0][1].tolist() == [1, 1, 1]


def test_a_dataset_that_ends_ends_the_training():
    dataset = tf.data.Dataset.from_tensors((tf.constant(X), tf.constant(3 * X + 2))).repeat(3)
    data = TFDatasetInput(dataset)
    trainer = SimpleTrainer(helpers.config(model=TinyModel(), data=data, steps_per_epoch=10))
    with pytest.raises(DataEnded, match="ran out at step 4 of 10"):
        trainer.train()


def test_a_model_trains_on_a_flow_as_a_dataset_pass_after_pass():
    found = []
    look = when(
        trigger_epoch=lambda cb: found.extend(cb.trainer.sess.run(tf.trainable_variables()))
    )
    data = StagingInput(TFDatasetInput(DataFromList([[X, 3 * X + 2]])))
    config = helpers.config([look], model=TinyModel(), data=data, steps_per_epoch=100)
    SimpleTrainer(config).train()
    np.testing.assert_allclose(found, [3, 2], atol=0.1)


def test_a_validation_reads_one_pass_of_a_flow_without_a_length():
    class Count(Inferencer):
        def _before_inference(self):
            self.seen = 0

        def _get_fetches(self):
            return ["predicted"]

        def _on_fetches(self, results):
            self.seen += 1
            assert self.seen <= 3

        def _after_inference(self):
            return {"seen": self.seen}

    data = TFDatasetInput(FlowOf(lambda number: iter([[X, X]] * 3)))
    runner = InferenceRunner(data, Count())
    flow = DataFromList([[X, 3 * X + 2]])
    trainer = SimpleTrainer(
        helpers.config([runner], model=TinyModel(), dataflow=flow, steps_per_epoch=1, max_epoch=2)
    )
    trainer.train()
    assert [each.value for each in trainer.monitors.get_history("seen")] == [3, 3]


def test_a_reset_begins_from_the_start():
    flow = numbers(3)
    source = TFDatasetInput(flow)
    with running(source, NUMBER) as (_, sess, (x,), _):
        assert [sess.run(x) for _ in range(4)] == [0, 1, 2, 0]
        source.reset_state()
        assert [sess.run(x) for _ in range(2)] == [0, 1]
    assert flow.resets == 1


def test_an_error_of_the_flow_ends_the_run_as_it_is():
    def one_pass(number):
        yield [X, X]
        raise KeyError("no such file")

    data = TFDatasetInput(FlowOf(one_pass))
    config = helpers.config(model=TinyModel(), data=data, steps_per_epoch=10)
    with pytest.raises(KeyError, match="no such file"):
        SimpleTrainer(config).train()


def test_a_model_of_2017_may_have_datapoints_with_more_components(logged):
    class Of2017(ModelDesc):
        def _get_inputs(self):
            return [InputDesc(tf.float32, [None], "x")]

        def _build_graph(self, inputs):
            self.cost = tf.reduce_mean(inputs[0] * tf.get_variable("w", []))

        def _get_optimizer(self):
            return tf.train.GradientDescentOptimizer(0.1)

    data = TFDatasetInput(DataFromList([[X, 5]]))
    SimpleTrainer(helpers.config(model=Of2017(), data=data, steps_per_epoch=1)).train()
    assert sum("Datapoints have 2 components" in line for line in logged) == 1


class Stuck(DataFlow):
    """Gives one datapoint, and then nothing until it is closed."""

    def __init__(self):
        self.closed = threading.Event()

    def __iter__(self):
        yield [X, X]
        self.closed.wait()
        raise DataFlowTerminated("closed")

    def close(self):
        self.closed.set()


@pytest.mark.parametrize("wrap", [lambda data: data, StagingInput])
def test_an_interrupt_ends_the_wait_for_a_flow(wrap):
    def interrupt_soon(cb):
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()

    data = wrap(TFDatasetInput(Stuck()))
    callbacks = [when(before_epoch=interrupt_soon)]
    config = helpers.config(callbacks, model=TinyModel(), data=data, steps_per_epoch=10)
    with pytest.raises(TrainingInterrupted):
        SimpleTrainer(config).train()


def test_a_resumed_run_starts_over_or_is_refused(logged):
    with running(TFDatasetInput(numbers(3)), NUMBER) as (_, _, _, callbacks):
        states = [each.state_dict() for each in callbacks]
    with tf.Graph().as_default():
        with running(TFDatasetInput(numbers(3)), NUMBER, states=states):
            assert any("tf.data does not say how far it is. It starts over." in m for m in logged)
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="Use a QueueInput"):
        with running(TFDatasetInput(numbers(3)), NUMBER, states=states, resume_strictly=True):
            pass


def test_a_flow_becomes_a_dataset_of_one_pass():
    flow = numbers(3)
    dataset = TFDatasetInput.dataflow_to_dataset(flow, [tf.int64])
    (x,) = tf.data.make_one_shot_iterator(dataset.repeat(2)).get_next()
    with tf.Session() as sess:
        assert [sess.run(x) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert flow.resets == 1
    with pytest.raises(ValueError, match="takes a DataFlow, got list"):
        TFDatasetInput.dataflow_to_dataset([1], [tf.int64])
