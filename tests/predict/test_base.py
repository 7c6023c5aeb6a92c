"""Predictors give what the graph gives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.predict import (
    OfflinePredictor,
    OnlinePredictor,
    PredictConfig,
)
from tensorpack.tfutils.checkpoint import save_checkpoint_vars
from tensorpack.tfutils.sesscreate import ReuseSessionCreator
from tensorpack.tfutils.sessinit import DictRestore, SaverRestore, SessionInit, SmartInit
from tests.computing import compiled, run_nodes
from tests.helpers import TinyModel

WEIGHTS = {"weight": np.float32(3), "bias": np.float32(1)}


@pytest.fixture
def doubler():
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.Session() as sess:
        yield OnlinePredictor([x], [x * 2, x + 1], sess=sess)


def config(tower, shape=(), **options):
    signature = [tf.TensorSpec(shape, tf.float32, "x")]
    return PredictConfig(
        tower_func=tower, input_signature=signature, output_names=["out"], **options
    )


def test_call_in_both_spellings(doubler):
    for result in (doubler(np.float32([1, 2])), doubler([np.float32([1, 2])]), doubler([1, 2])):
        np.testing.assert_array_equal(result, [[2, 4], [2, 3]])


@pytest.mark.parametrize(
    "shape, argument, value",
    [
        ([None, 2], [[[1, 2]]], [[1, 2]]),  # of 2017: a list of one input, a batch of one state
        ([None, 2], [np.float32([[1, 2], [3, 4]])], [[1, 2], [3, 4]]),
        ([None, 2], ([[1, 2]],), [[1, 2]]),
        ([None, 2], [[1, 2]], [[1, 2]]),  # a batch of one state
        ([None, 2], [np.float32([1, 2]), np.float32([3, 4])], [[1, 2], [3, 4]]),
        ([], [5], 5),
        (None, [np.float32([1, 2])], [1, 2]),
    ],
)
def test_a_list_for_one_input_is_told_apart_by_dimensions(shape, argument, value):
    x = tf.placeholder(tf.float32, shape)
    with tf.Session() as sess:
        result = OnlinePredictor([x], [tf.identity(x)], sess=sess)(argument)[0]
    np.testing.assert_array_equal(result, value)
    assert np.shape(result) == np.shape(value)


def test_a_list_for_several_inputs_holds_all_of_them():
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [None], name="y")
    with tf.Session() as sess:
        predictor = OnlinePredictor([x, y], [x + y], sess=sess)
        np.testing.assert_array_equal(predictor([1, [2, 3]]), [[3, 4]])
        with pytest.raises(ValueError, match=r"takes 2 arrays \(Placeholder:0, y:0\), got 3"):
            predictor([1, 2, 3])


def test_return_input():
    options = {"input_names": ["x"], "output_names": ["predicted"], "return_input": True}
    config = PredictConfig(model=TinyModel(), session_init=DictRestore(WEIGHTS), **options)
    with OfflinePredictor(config) as offline:
        assert offline(np.float32([2])) == ([2], [7])


def test_a_wrong_number_of_arguments_or_shape_names_the_tensor(doubler):
    with pytest.raises(ValueError, match=r"takes 1 arrays \(x:0\), got 2"):
        doubler(np.zeros(1), np.zeros(1))
    doubler(np.zeros(2))
    with pytest.raises(ValueError, match=r"'x:0': the model takes float32 .*gave float64 \[2, 1\]"):
        doubler(np.zeros((2, 1)))


@pytest.mark.parametrize("wrap", [lambda image: [image], np.ndarray.tolist])
def test_an_image_of_floats_is_not_taken_for_one_of_integers(wrap):
    """All of [0, 1) would become 0: two images would give the same answer."""
    image = tf.placeholder(tf.uint8, [2], name="image")
    with tf.Session() as sess:
        predictor = OnlinePredictor([image], [tf.cast(image, tf.int32)], sess=sess)
        for right in (np.uint8([0, 255]), np.array([0, 255]), [0, 255]):
            np.testing.assert_array_equal(predictor(wrap(np.asarray(right)))[0], [0, 255])
        with pytest.raises(TypeError, match="'image:0'.* uint8 .*from float64 to uint8 changes"):
            predictor(wrap(np.array([0.25, 0.75])))


def test_without_a_session():
    x = tf.placeholder(tf.float32, [])
    predictor = OnlinePredictor([x], [x])
    with pytest.raises(RuntimeError, match="has no session yet"):
        predictor(1.0)
    with tf.Session().as_default() as sess:
        assert predictor(1.0) == [1.0]
        sess.close()


def test_many_threads_at_once(doubler):
    def ask(number):
        return [doubler(np.float32([number]))[0] for _ in range(50)]

    with ThreadPoolExecutor(4) as threads:
        for number, doubled in enumerate(threads.map(ask, range(4))):
            assert doubled == [2 * number] * 50


@pytest.mark.parametrize(
    "values, inputs, output, lacking",
    [
        ({"weight": 3.0}, ["x"], "predicted", "bias"),
        ({"weight": 3.0}, ["predicted", "y"], "cost", None),  # computes nothing from the weights
        ({"unrelated": 1.0}, ["x"], "unrelated_tensor", None),
    ],
)
def test_offline_predictor_demands_the_weights_that_its_outputs_need(
    values, inputs, output, lacking
):
    class Model(TinyModel):
        def build_graph(self, x, y):
            tf.identity(tf.get_variable("unrelated", []), "unrelated_tensor")
            super().build_graph(x, y)

    names = {"input_names": inputs, "output_names": [output]}
    config = PredictConfig(model=Model(), session_init=DictRestore(values), **names)
    if lacking is None:
        OfflinePredictor(config).close()
        return
    with pytest.raises(ValueError, match=f"{output}:0 cannot be computed: .* for {lacking}. Give"):
        OfflinePredictor(config)


def test_weights_may_come_from_several_sources_or_from_none(tmp_path):
    save_checkpoint_vars({**WEIGHTS, "bias": np.float32(5)}, tmp_path / "model")
    names = {"input_names": ["x"], "output_names": ["predicted"]}
    ignoring = SaverRestore(str(tmp_path / "model"), ignore=["bias"])
    parts = SmartInit([{"weight": 3.0}, {"bias": 1.0}])
    for init, expected in [(parts, 7), (ignoring, 6), (None, 0)]:
        config = PredictConfig(model=TinyModel(), session_init=init, **names)
        with OfflinePredictor(config) as predictor:
            assert predictor(np.float32([2]))[0] == [expected]
    assert tf.get_default_graph().get_operations() == []


def test_offline_predictor_feeds_any_tensor_of_the_tower():
    def tower(x):
        hidden = tf.identity(x + 1, name="hidden")
        return tf.identity(hidden * 2, name="out")

    with OfflinePredictor(config(tower, input_names=["hidden"])) as predictor:
        assert predictor(np.float32(5)) == [10]


def test_an_offline_predictor_takes_xla():
    def tower(x):
        for _ in range(5):
            x = tf.nn.relu(tf.matmul(x, x))
        return tf.identity(x, "out")

    with OfflinePredictor(config(tower, [4, 4], xla=True)) as predictor:
        np.testing.assert_array_equal(predictor(np.eye(4))[0], np.eye(4))
        feed = {predictor.input_tensors[0]: np.eye(4)}
        assert compiled(run_nodes(predictor.sess, predictor.output_tensors, feed)[1])


def test_the_session_of_another_stays_open():
    weight = tf.get_variable("weight", initializer=2.0)
    with tf.Session() as sess:
        sess.run(weight.initializer)
        options = {"session_creator": ReuseSessionCreator(sess), "session_init": SessionInit()}
        with pytest.raises(
            ValueError, match="of another graph than the model, .*create_graph=False"
        ):
            OfflinePredictor(config(lambda x: tf.negative(x, "out"), **options))
        here = config(lambda x: tf.multiply(x, weight, "out"), create_graph=False, **options)
        with OfflinePredictor(here) as predictor:
            assert predictor(3.0) == [6]
        assert sess.run(weight) == 2
