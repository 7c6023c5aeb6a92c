"""All callbacks together under a real trainer, as a script has them."""

import json
import re

import pytest

from tensorpack.callbacks import (
    MaxSaver,
    ModelSaver,
    PeriodicTrigger,
    RunOp,
    ScheduledHyperParamSetter,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.train import SimpleTrainer, TrainConfig
from tests.callbacks.driver import log_directory, log_lines
from tests.helpers import TinyModel


class Model(TinyModel):
    def build_graph(self, x, y):
        cost = super().build_graph(x, y)
        add_moving_summary(cost)
        rate = tf.get_variable("rate", [], initializer=tf.ones_initializer(), trainable=False)
        tf.summary.scalar("rate-summary", rate)
        return cost


def config(callbacks, **options):
    return TrainConfig(
        dataflow=DataFromList([[[1.0, 2.0], [3.0, 5.0]]], shuffle=False),
        model=Model(),
        callbacks=callbacks,
        steps_per_epoch=3,
        **options,
    )


@pytest.fixture
def directory(tmp_path):
    with log_directory(tmp_path):
        yield tmp_path


def test_a_run_writes_its_log_its_files_and_its_models(directory, capsys):
    callbacks = [
        ModelSaver(),
        PeriodicTrigger(RunOp(lambda: tf.no_op("sync"), verbose=True), every_k_steps=2),
        ScheduledHyperParamSetter("rate", [(0, 1), (2, 0.5)], "linear"),
        MaxSaver("rate"),
    ]
    SimpleTrainer(config(callbacks, max_epoch=2)).train()
    lines = log_lines(capsys)
    wanted = [
        r"Setup callbacks graph \.\.\.",
        r"Maintain moving average summary of 1 tensors\.",
        r"Creating the session \.\.\.",
        r"Graph Finalized\.",
        r"Running Op PeriodicTrigger/RunOp/sync \.\.\.",
        r"Start Epoch 1 \.\.\.",
        r"Running Op PeriodicTrigger/RunOp/sync \.\.\.",
        r"Epoch 1 \(global_step 3\) finished, time:\d+\.\d\d sec\.",
        rf"Model saved to {directory}/model-3\.",
        r"rate at epoch 2 will change to 0\.75000000",
        r"Model at global_step=3 with maximum rate=1 saved\.",
        r"cost: \d.*",
        r"rate: 1",
        r"Start Epoch 2 \.\.\. Left: 1 of 2 epochs, about \d\.\d\d seconds\.",
        r"Running Op PeriodicTrigger/RunOp/sync \.\.\.",
        r"Running Op PeriodicTrigger/RunOp/sync \.\.\.",
        r"Epoch 2 \(global_step 6\) finished, .*",
        rf"Model saved to {directory}/model-6\.",
        r"rate at epoch 3 will change to 0\.50000000",
        r"cost: \d.*",
        r"rate: 0\.75",
        r"Training has finished!",
    ]
    start = lines.index("Setup callbacks graph ...")
    found = [line for line in lines[start:] if any(re.match(each, line) for each in wanted)]
    assert len(found) == len(wanted), found
    assert all(re.match(each + "$", line) for each, line in zip(wanted, found)), found

    stats = json.loads((directory / "stats.json").read_text())
    assert [(each["epoch_num"], each["global_step"], each["rate"]) for each in stats] == [
        (1, 3, 1.0),
        (2, 6, 0.75),
    ]
    assert tf.train.load_variable(str(directory / "model-6"), "global_step") == 6
    assert tf.train.load_variable(str(directory / "max-rate"), "global_step") == 3
    assert len(list(directory.glob("events.out.tfevents.*"))) == 1
