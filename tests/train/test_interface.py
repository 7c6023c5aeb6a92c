"""The later way to start a run."""

import numpy as np
import pytest

from tensorpack.train import SimpleTrainer, TrainConfig, launch_train_with_config
from tests.train.test_simple import config, flow


def test_trains():
    look, options = config(dataflow=flow())
    trainer = SimpleTrainer()
    launch_train_with_config(options, trainer)
    assert trainer.global_step == 100
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)


def test_wrong_arguments():
    _, options = config(dataflow=flow())
    with pytest.raises(TypeError, match="must be a TrainConfig, got dict"):
        launch_train_with_config({}, SimpleTrainer())
    with pytest.raises(TypeError, match="such as SimpleTrainer"):
        launch_train_with_config(options, SimpleTrainer)
    with pytest.raises(ValueError, match="has a config already"):
        launch_train_with_config(options, SimpleTrainer(options))
    with pytest.raises(ValueError, match="needs a model"):
        launch_train_with_config(TrainConfig(dataflow=flow()), SimpleTrainer())
