"""What a predictor's options accept and refuse."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.predict import PredictConfig
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tests.helpers import TinyModel

SPEC = [tf.TensorSpec([None], tf.float32, "x")]
CREATED = {"model": TinyModel(), "session_creator": NewSessionCreator()}


def test_defaults():
    config = PredictConfig(model=TinyModel(), output_names=["predicted"])
    assert config.input_names == ["x", "y"]
    assert config.output_names == ["predicted"]
    assert not config.return_input and config.create_graph


def test_tower_func_instead_of_a_model():
    config = PredictConfig(
        tower_func=lambda x: tf.identity(x, "out"), input_signature=SPEC, output_names=["out"]
    )
    assert config.input_signature == SPEC
    again = PredictConfig(tower_func=config.tower_func, output_names=["out"])
    assert again.tower_func is config.tower_func


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({}, ValueError, "Give either a model"),
        ({"model": 3}, TypeError, "must be a ModelDescBase, got int"),
        ({"tower_func": abs}, ValueError, "needs its input_signature"),
        ({"model": TinyModel(), "tower_func": abs}, ValueError, "Give either a model"),
        ({"model": TinyModel(), "output_names": []}, ValueError, "output_names must be"),
        ({"model": TinyModel(), "output_names": "out"}, ValueError, "output_names must be"),
        ({**CREATED, "session_config": tf.ConfigProto()}, ValueError, "either session_creator"),
        ({**CREATED, "precision": "bf16"}, ValueError, "either session_creator"),
    ],
)
def test_bad_options(options, error, text):
    with pytest.raises(error, match=text):
        PredictConfig(**{"output_names": ["predicted"], **options})
