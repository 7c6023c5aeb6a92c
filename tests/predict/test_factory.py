"""Inference towers beside those that are trained."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import TensorInput
from tensorpack.predict import PredictorFactory
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


def test_a_tower_on_an_input_source(model):
    factory = PredictorFactory(model, [0])
    source = TensorInput(lambda: [tf.constant(X), tf.constant(X)])
    handle = factory.build("InferenceTower", "/cpu:0", source)
    assert factory.has_built("InferenceTower") and not handle.is_training
    assert handle["x"].op.type == "Const"
    assert handle["predicted"].name == "InferenceTower/predicted:0"
    with pytest.raises(RuntimeError, match="exists already"):
        factory.build("InferenceTower", "/cpu:0")


def test_what_is_no_model():
    with pytest.raises(TypeError, match="model must be a ModelDescBase, got int"):
        PredictorFactory(3, [0])
