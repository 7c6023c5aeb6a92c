"""What a run's options accept and refuse."""

import inspect
import re

import pytest

from tensorpack.callbacks import Callback, ProgressBar
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromGenerator, FakeData
from tensorpack.input_source import QueueInput
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.train import DEFAULT_CALLBACKS, DEFAULT_MONITORS, TrainConfig
from tests.helpers import TinyModel


def flow(size=7):
    return FakeData([[4], [4]], size=size)


def test_every_argument_is_described():
    described = TrainConfig.__doc__.partition("Args:")[2].partition("Attributes:")[0]
    names = re.findall(r"^ {6}(\w+(?:, \w+)*):", described, re.MULTILINE)
    arguments = list(inspect.signature(TrainConfig).parameters)[:-1]  # without **kwargs
    assert sorted(", ".join(names).split(", ")) == sorted(arguments)


def test_defaults_of_the_reference_page():
    config = TrainConfig(dataflow=flow(), model=TinyModel())
    callbacks = ["MovingAverageSummary", "ProgressBar", "MergeAllSummaries", "RunUpdateOps"]
    assert [str(each) for each in config.callbacks] == callbacks
    assert [str(each) for each in DEFAULT_CALLBACKS()] == callbacks
    monitors = ["TFEventWriter", "JSONWriter", "ScalarPrinter"]
    assert [str(each) for each in config.monitors] == monitors
    assert [str(each) for each in DEFAULT_MONITORS()] == monitors
    assert (config.starting_epoch, config.steps_per_epoch, config.max_epoch) == (1, 7, 99999)
    assert (config.nr_tower, config.tower, config.predict_tower) == (1, [0], [0])
    assert isinstance(config.session_creator, NewSessionCreator)
    assert type(config.session_init) is JustCurrentSession


def test_callbacks_are_those_given_and_then_the_extra_ones():
    mine, more, extra = Callback(), Callback(), ProgressBar()
    for given in [mine, more], ([mine], more), iter([(mine, more)]):
        config = TrainConfig(dataflow=flow(), callbacks=given, extra_callbacks=iter([extra]))
        assert config.callbacks == [mine, more, extra]


def test_callbacks_of_another_config_are_given_on():
    first = TrainConfig(dataflow=flow(), callbacks=[Callback()])
    assert [str(each) for each in first.extra_callbacks][1] == "ProgressBar"
    second = TrainConfig(
        dataflow=flow(), callbacks=first.callbacks, extra_callbacks=first.extra_callbacks
    )
    assert second.callbacks == first.callbacks


def test_steps_are_cut_with_a_warning(capfd):
    assert TrainConfig(dataflow=flow(), steps_per_epoch=2.0).steps_per_epoch == 2
    assert "is cut" not in capfd.readouterr().out
    assert TrainConfig(dataflow=flow(), steps_per_epoch=2.5).steps_per_epoch == 2
    assert "steps_per_epoch=2.5 is cut to 2. Divide with //" in capfd.readouterr().out


def test_the_session_config_is_the_one_in_force():
    config = TrainConfig(dataflow=flow())
    assert config.session_config is config.session_creator.config
    assert TrainConfig(dataflow=flow(), session_creator=object()).session_config is None


def test_size_of_an_input_source():
    assert TrainConfig(data=QueueInput(flow(9))).steps_per_epoch == 9


def test_number_of_towers():
    config = TrainConfig(dataflow=flow(), nr_tower=2)
    assert config.tower == [0, 1]
    config.nr_tower = 3
    assert config.tower == [0, 1, 2]
    with pytest.raises(ValueError, match="^TrainConfig: nr_tower must be .* got 0"):
        config.nr_tower = 0
    assert TrainConfig(dataflow=flow(), tower=[1, 3]).nr_tower == 2


def test_an_argument_that_is_mistyped():
    said = r"no argument steps_per_epoc\. Did you mean steps_per_epoch\?"
    with pytest.raises(TypeError, match=said):
        TrainConfig(dataflow=flow(), steps_per_epoc=3)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"dataset": 1}, TypeError, "no argument dataset. It is called dataflow"),
        ({"dataflow": flow(), "data": QueueInput(flow())}, ValueError, "not both"),
        (
            {"dataflow": flow(), "model": TinyModel},
            TypeError,
            r"got the class TinyModel. Create an instance: TinyModel\(...\)",
        ),
        (
            {"dataflow": flow(), "session_creator": NewSessionCreator(), "xla": True},
            ValueError,
            r"session_creator makes that: .* as in NewSessionCreator\(precision=..., xla=...\)",
        ),
        ({}, ValueError, "needs steps_per_epoch, or data"),
        ({"dataflow": DataFromGenerator(iter([]))}, ValueError, "does not know its size"),
    ],
)
def test_bad_options(options, error, text):
    with pytest.raises(error, match=text):
        TrainConfig(**options)


def test_precision_and_xla_go_to_the_default_session_creator():
    user = tf.ConfigProto(intra_op_parallelism_threads=2)
    config = TrainConfig(dataflow=flow(), session_config=user, precision="fp16", xla=True)
    made = config.session_creator.config
    assert made.intra_op_parallelism_threads == 2
    assert made.graph_options.rewrite_options.auto_mixed_precision == 1
    assert made.graph_options.optimizer_options.global_jit_level == 2
    assert user == tf.ConfigProto(intra_op_parallelism_threads=2)
    assert (config.computing.precision, config.computing.xla) == ("fp16", True)


def test_a_session_creator_says_how_it_computes():
    creator = NewSessionCreator(precision="fp16")
    assert TrainConfig(dataflow=flow(), session_creator=creator).computing is creator.computing
    assert not TrainConfig(dataflow=flow()).computing.is_set
