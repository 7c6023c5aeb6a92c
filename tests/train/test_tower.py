"""Predictors of a trainer see the weights as they are being trained."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import FeedInput
from tensorpack.train import SimpleTrainer
from tests import helpers
from tests.helpers import TinyModel

X = np.float32([1.0, 2.0])
CPUS = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)


class Predicts(Callback):
    """Asks a predictor after each step."""

    def __init__(self, **where):
        self._where, self.seen = where, []

    def _setup_graph(self):
        self.predict = self.trainer.get_predictor(["x"], ["predicted"], **self._where)

    def _trigger_step(self):
        self.seen.append(self.predict(X)[0])


def trainer(*callbacks, **options):
    flow, model = DataFromList([[X, 3 * X + 2]], shuffle=False), TinyModel(learning_rate=0.2)
    options = {"dataflow": flow, "model": model, "steps_per_epoch": 40, **options}
    return SimpleTrainer(helpers.config(callbacks, **options))


def test_a_predictor_follows_the_training_whenever_it_was_made():
    class AsksLater(Predicts):
        def _before_train(self):
            predict = self.trainer.get_predictor(["x"], ["predicted"])
            with ThreadPoolExecutor(1) as pool:  # a thread has no default session
                self.first = pool.submit(predict, X).result()[0]

    predicts = AsksLater()
    trainer(predicts).train()
    assert predicts.first.tolist() == [0, 0] != predicts.seen[0].tolist()
    np.testing.assert_allclose(predicts.seen[-1], [5, 8], atol=0.5)


def test_a_predictor_that_was_called_in_another_session_follows_the_training():
    class CallsAtOnce(Predicts):
        def _setup_graph(self):
            super()._setup_graph()
            with tf.Session(config=CPUS) as sess:
                sess.run(tf.global_variables_initializer())
                assert self.predict(X)[0].tolist() == [0, 0]

    predicts = CallsAtOnce()
    trainer(predicts).train()
    np.testing.assert_allclose(predicts.seen[-1], [5, 8], atol=0.5)


@pytest.mark.parametrize(
    "options, where, name, device",
    [
        ({}, {}, "towerp0", "/device:GPU:0"),
        ({"predict_tower": [3, -1]}, {"tower": 0}, "towerp0", "/device:GPU:3"),
        ({"predict_tower": [3, -1]}, {"tower": 1}, "towerp1", "/device:CPU:0"),
        ({}, {"device": 2}, "towerp2", "/device:GPU:2"),
        ({}, {"tower": 2}, "towerp2", "/device:GPU:2"),  # 0.11's device, in third position
        ({}, {"tower": -1}, "towerp-cpu", "/device:CPU:0"),
        ({"predict_tower": [1]}, {"device": 1}, "towerp0", "/device:GPU:1"),
        ({"predict_tower": [1]}, {"device": 0}, "towerp-gpu0", "/device:GPU:0"),
        ({"predict_tower": ["/cpu:0", "/cpu:1"]}, {"tower": 1}, "towerp1", "/device:CPU:1"),
        ({"session_config": CPUS}, {"device": 4}, "towerp4", "/device:CPU:1"),
    ],
)
def test_names_and_devices_in_both_spellings(options, where, name, device):
    run = trainer(Predicts(**where), **options)
    run.setup()
    with run.sess:
        assert run.towers[name]["predicted"].op.device == device
        assert run.towers[name]["predicted"].name == f"{name}/predicted:0"


def test_an_inference_tower_is_on_the_first_device_for_predictions():
    class Infers(Callback):
        def _setup_graph(self):
            source = FeedInput(DataFromList([[X, X]]))
            (self.tower,), _ = self.trainer.build_inference_towers(source, [("infer", None)])

    infers = Infers()
    run = trainer(infers, predict_tower=["/cpu:2", "/cpu:1"], session_config=CPUS)
    run.setup()
    with run.sess:
        assert infers.tower["predicted"].op.device == "/device:CPU:2"


def test_several_predictors_go_round_the_towers():
    class Many(Callback):
        def _setup_graph(self):
            self.predictors = self.trainer.get_predictors(["x"], ["predicted"], 3)

    many = Many()
    run = trainer(many, predict_tower=[0, 1])
    run.setup()
    with run.sess:
        names = [predictor.output_tensors[0].name for predictor in many.predictors]
        assert run.predictor_factory.has_built("towerp1")
    assert names == ["towerp0/predicted:0", "towerp1/predicted:0", "towerp0/predicted:0"]


def test_tower_function_can_be_set_once():
    run = trainer()
    with pytest.raises(RuntimeError, match="no tower function yet"):
        assert run.towers
    run.setup()
    with run.sess:
        with pytest.raises(RuntimeError, match="only once"):
            run.tower_func = run.tower_func
