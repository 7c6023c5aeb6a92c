"""Inference towers beside those that are trained."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import TensorInput
from tensorpack.predict import PredictorFactory
from tensorpack.tfutils.devices import device_text
from tensorpack.tfutils.tower import TowerContext
from tests.helpers import TinyModel

X = np.float32([1, 2])


@pytest.fixture
def model():
    """A model whose training tower is built."""
    tiny = TinyModel()
    with TowerContext("", is_training=True):
        tiny.build_graph(*[tf.placeholder(spec.dtype, spec.shape) for spec in tiny.inputs()])
    return tiny


def test_predictors_share_the_variables_and_towers_are_built_once(model, capfd):
    factory = PredictorFactory(model, [-1, 2])
    one = factory.get_predictor(["x"], ["predicted"], 0)
    other = factory.get_predictor(["x"], ["predicted"], 1)
    factory.get_predictor(["x"], ["predicted"], 1)
    assert factory.has_built("towerp0") and factory.has_built("towerp1")
    assert not factory.has_built("towerp2")
    assert one.output_tensors[0].device == "/device:CPU:0"
    assert other.output_tensors[0].name == "towerp1/predicted:0"
    assert other.output_tensors[0].device == "/device:GPU:2"
    out = capfd.readouterr().out
    assert out.count(f"Building predictor tower 'towerp1' on device {device_text(2)} ...") == 1
    assert len(tf.global_variables()) == 2
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)).as_default() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.assign(tf.global_variables()[0], 3))
        np.testing.assert_array_equal(one(X), [3 * X])
        np.testing.assert_array_equal(other(X), [3 * X])
        sess.close()


def test_a_tower_on_an_input_source(model):
    factory = PredictorFactory(model, [0])
    source = TensorInput(lambda: [tf.constant(X), tf.constant(X)])
    handle = factory.build("InferenceTower", "/cpu:0", source)
    assert factory.has_built("InferenceTower") and not handle.is_training
    assert handle["x"].op.type == "Const"
    assert handle["predicted"].name == "InferenceTower/predicted:0"
    with pytest.raises(RuntimeError, match="exists already"):
        factory.build("InferenceTower", "/cpu:0")
