"""A predictor with an input source runs all that the source needs, and ends it."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromGenerator, DataFromList
from tensorpack.input_source import FeedInput, QueueInput, StagingInput, TensorInput
from tensorpack.predict import FeedfreePredictor, PredictConfig
from tensorpack.tfutils.sessinit import DictRestore
from tests.helpers import TinyModel
from tests.predict.predicting import config

X = np.float32([1, 2])


def flow():
    return DataFromList([[X, X], [2 * X, X]], shuffle=False)


@pytest.mark.parametrize(
    "source",
    [FeedInput, QueueInput, lambda ds: StagingInput(QueueInput(ds))],
    ids=["feed", "queue", "staging"],
)
def test_each_call_takes_the_next_datapoint(source):
    with FeedfreePredictor(config(), source(flow())) as predictor:
        results = [predictor()[0] for _ in range(3)]
    np.testing.assert_array_equal(results, [[4, 7], [7, 13], [4, 7]])
    assert tf.get_default_graph().get_operations() == []
    with pytest.raises(RuntimeError, match="is closed"):
        predictor()


def test_tensors_that_queue_runners_make():
    def read():
        name = tf.train.string_input_producer(["1", "2"], num_epochs=1, shuffle=False).dequeue()
        return [tf.string_to_number(name) * X, tf.constant(X)]

    with FeedfreePredictor(config(), TensorInput(read)) as predictor:
        np.testing.assert_array_equal([predictor()[0] for _ in range(2)], [[4, 7], [7, 13]])
        with pytest.raises(tf.errors.OutOfRangeError):
            predictor()


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
def test_an_error_of_the_dataflow_is_raised(source):
    def generate():
        yield [X, X]
        raise OSError("the disk")

    with FeedfreePredictor(config(), source(DataFromGenerator(generate))) as predictor:
        predictor()
        with pytest.raises(OSError, match="the disk"):
            predictor()


def test_arguments_have_no_place():
    with FeedfreePredictor(config(), QueueInput(flow())) as predictor:
        with pytest.raises(ValueError, match="call it without arguments, not with 1"):
            predictor(X)
    with pytest.raises(TypeError, match="such as QueueInput.*, got DataFromList"):
        FeedfreePredictor(config(), flow())


def test_a_failed_construction_releases_the_source():
    released = []

    class Source(QueueInput):
        def _release(self):
            released.append(self)
            super()._release()

    class Failing(DictRestore):
        def _run_init(self, sess):
            raise OSError("the disk")

    bad = PredictConfig(TinyModel(), output_names=["predicted"], session_init=Failing({}))
    with pytest.raises(OSError, match="the disk"):
        FeedfreePredictor(bad, Source(flow()))
    assert len(released) == 1
