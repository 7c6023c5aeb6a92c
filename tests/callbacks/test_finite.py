"""A cost that is no number ends the run, and is not saved."""

import glob

import numpy as np
import pytest

from tensorpack.callbacks import ModelSaver, StopIfNonFinite
from tensorpack.callbacks.finite import NonFiniteError
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromGenerator
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tensorpack.train import QueueInputTrainer, TrainConfig
from tests.contracts.callback import CallbackContract
from tests.helpers import TinyModel


class TestStopIfNonFinite(CallbackContract):
    def make_callback(self):
        return StopIfNonFinite(["cost"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_run_ends_at_the_step_and_keeps_the_last_good_model(bad, log_dir):
    def points():
        for step in range(1, 100):
            value = np.float32(bad if step == 7 else 1)
            yield [np.float32([1.0]), np.float32([value])]

    config = TrainConfig(
        dataflow=DataFromGenerator(points),
        model=TinyModel(),
        callbacks=[ModelSaver()],
        steps_per_epoch=3,
        max_epoch=10,
    )
    with pytest.raises(NonFiniteError, match=rf"^cost is {bad} at global_step 7\."):
        QueueInputTrainer(config).train()
    models = sorted(glob.glob(log_dir + "/model-*.index"))
    assert [each.rpartition("-")[2] for each in models] == ["3.index", "6.index"]
    for each in models:
        saved = load_checkpoint_vars(each[: -len(".index")])
        assert all(np.isfinite(value).all() for value in saved.values())


def test_only_scalars_can_be_looked_at():
    tf.zeros([2], name="pair")
    callback = StopIfNonFinite(["pair"])

    class Trainer:
        pass

    trainer = Trainer()
    with pytest.raises(ValueError, match="pair:0 is none"):
        callback.setup_graph(trainer)
