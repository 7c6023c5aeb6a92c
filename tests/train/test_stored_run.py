"""A run that the library saved at commit dd9d8767 is resumed."""

import shutil
from pathlib import Path

import numpy as np

import tensorpack as tp
from tensorpack.callbacks import ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList, LocallyShuffleData
from tensorpack.graph_builder import ModelDesc
from tensorpack.train import SimpleTrainer, TrainConfig
from tensorpack.utils import logger

DATA = Path(__file__).parents[1] / "data"


class Linear(ModelDesc):
    def inputs(self):
        return [
            tf.TensorSpec([None, 2], tf.float32, "x"),
            tf.TensorSpec([None], tf.float32, "y"),
        ]

    def build_graph(self, x, y):
        weights = tf.get_variable("w", [2])
        cost = tf.reduce_mean(tf.square(tf.reduce_sum(x * weights, 1) - y), name="cost")
        tp.summary.add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.MomentumOptimizer(0.01, 0.9)


def test_it_is_resumed(tmp_path, capsys):
    log_dir = tmp_path / "log"
    shutil.copytree(str(DATA / "run"), str(log_dir))
    logger.set_logger_dir(str(log_dir), action="k")
    rng = np.random.RandomState(0)
    datapoints = [[rng.randn(2).astype("f4"), np.float32(i)] for i in range(40)]
    flow = BatchData(LocallyShuffleData(DataFromList(datapoints, shuffle=True), 16), 8)
    config = TrainConfig(
        model=Linear(),
        data=tp.QueueInput(flow),
        callbacks=[ModelSaver()],
        steps_per_epoch=3,
        max_epoch=3,
        resume="must",
    )
    trainer = SimpleTrainer()
    tp.launch_train_with_config(config, trainer)
    logger.close_logger_dir()
    said = capsys.readouterr().out
    assert trainer.global_step == 9 and (log_dir / "model-9.state").exists()
    assert "Restoring checkpoint" in said and "model-6" in said
