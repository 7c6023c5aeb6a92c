"""What a predictor's options accept and refuse."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.predict import PredictConfig
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tests.helpers import TinyModel

MODEL = TinyModel()


def TOWER(x):
    return tf.identity(x, "out")


SPEC = [tf.TensorSpec([None], tf.float32, "x")]
CREATED = {"model": TinyModel(), "session_creator": NewSessionCreator()}


def test_tower_func_instead_of_a_model():
    config = PredictConfig(
        tower_func=lambda x: tf.identity(x, "out"), input_signature=SPEC, output_names=["out"]
    )
    assert config.input_signature == SPEC and config.input_names == ["x"]
    assert not config.return_input and config.create_graph
    again = PredictConfig(tower_func=config.tower_func, output_names=["out"])
    assert again.tower_func is config.tower_func


CREATOR, INIT = NewSessionCreator(), JustCurrentSession()


@pytest.mark.parametrize(
    "arguments",
    [
        (None, TOWER, SPEC, ["x"], ["out"], CREATOR, INIT, True, False),  # of 0.11
        (MODEL, CREATOR, INIT, ["x"], ["out"], True, False),  # of 2017
        (MODEL, None, None, ["x"], ["out"], False, True),
        (MODEL, None, None, ["x"], ["out"]),  # of both
    ],
)
def test_positions_of_both_generations(arguments):
    config = PredictConfig(*arguments)
    assert config.model is arguments[0]
    assert config.input_names == ["x"] and config.output_names == ["out"]
    assert (config.session_creator is CREATOR) == (CREATOR in arguments)
    assert (config.session_init is INIT) == (INIT in arguments)
    flags = [argument for argument in arguments if isinstance(argument, bool)]
    assert [config.return_input, config.create_graph][: len(flags)] == flags


def test_a_position_of_2017_beside_keywords():
    proto = tf.ConfigProto(inter_op_parallelism_threads=3)
    config = PredictConfig(MODEL, None, None, None, ["out"], False, True, proto, precision="fp32")
    assert config.session_creator.config.inter_op_parallelism_threads == 3
    with pytest.raises(TypeError, match="multiple values .*'session_init'"):
        PredictConfig(MODEL, None, INIT, session_init=INIT)
    with pytest.raises(TypeError, match="multiple values"):
        PredictConfig(MODEL, None, None, None, ["out"], False, True, proto, None)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({}, ValueError, "Give either a model"),
        ({"model": TinyModel}, TypeError, r"Create an instance: TinyModel\(...\)"),
        ({"tower_func": abs}, ValueError, "needs its input_signature"),
        ({"model": TinyModel(), "output_names": "out"}, ValueError, "output_names must be"),
        ({**CREATED, "precision": "bf16"}, ValueError, "either session_creator"),
    ],
)
def test_bad_options(options, error, text):
    with pytest.raises(error, match=text):
        PredictConfig(**{"output_names": ["predicted"], **options})
