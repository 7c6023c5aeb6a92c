import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput
from tensorpack.models import BatchNorm
from tensorpack.train import (
    BytePSTrainer,
    CollectiveTrainer,
    HorovodTrainer,
    TrainConfig,
    launch_train_with_config,
)


class Line(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None], tf.float32, "x")]

    def build_graph(self, x):
        self.weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        return tf.reduce_mean(self.weight * x)

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(1.0)


@pytest.fixture
def horovod(monkeypatch):
    """What a process sees of Horovod that is worker 1 of 2, whose workers all have equal data."""
    calls = []

    def allreduce(tensor, op, **options):
        calls.append(options)
        return tensor * {"average": 1.0, "sum": 2.0}[op]

    def broadcast(root):
        return tf.group(*[each.assign(each + 100.0) for each in tf.trainable_variables()])

    module = ModuleType("horovod.tensorflow")
    module.__dict__.update(
        init=lambda: calls.append("init"),
        rank=lambda: 1,
        local_rank=lambda: 0,
        size=lambda: 2,
        mpi_enabled=lambda: True,
        allreduce=allreduce,
        broadcast_global_variables=broadcast,
        Average="average",
        Sum="sum",
        Compression=SimpleNamespace(fp16="half"),
    )
    package = ModuleType("horovod")
    package.__spec__ = SimpleNamespace(name="horovod")
    monkeypatch.setitem(sys.modules, "horovod", package)
    monkeypatch.setitem(sys.modules, "horovod.tensorflow", module)
    return calls


class KeepWeight(Callback):
    _chief_only = False

    def _after_train(self):
        self.value = self.trainer.sess.run(self.trainer.model.weight)


def weight_after(make_trainer, model=None, saver=None):
    keep = KeepWeight()
    with tf.Graph().as_default():
        config = TrainConfig(
            model=model or Line(),
            data=FeedInput(DataFromList([[np.float32([2.0, 4.0])]])),
            callbacks=[keep] if saver is None else [keep, saver],
            extra_callbacks=[],
            monitors=[],
            steps_per_epoch=2,
            max_epoch=1,
        )
        trainer = make_trainer()
        launch_train_with_config(config, trainer)
    return keep.value, trainer


@pytest.mark.parametrize("kind", [HorovodTrainer, BytePSTrainer])
def test_without_its_library_it_is_a_collective_trainer(kind, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    weight, trainer = weight_after(kind)
    assert isinstance(trainer, CollectiveTrainer)
    assert (weight, trainer.is_chief, trainer.mpi_enabled()) == (-6.0, True, False)


def test_with_horovod_that_reduces_and_broadcasts(horovod):
    weight, trainer = weight_after(lambda: HorovodTrainer(average=False, compression="fp16"))
    assert weight == 100.0 - 2 * 2 * 3.0
    assert horovod == ["init", {"compression": "half"}]
    assert (trainer.is_chief, trainer.mpi_enabled(), trainer.cluster) == (False, True, None)


def test_with_horovod_only_the_first_worker_saves(horovod, tmp_path):
    weight_after(BytePSTrainer, saver=ModelSaver(checkpoint_dir=str(tmp_path / "models")))
    assert not (tmp_path / "models").exists()


def test_horovod_adds_up_the_statistics_of_a_layer(horovod):
    class Normalized(Line):
        def build_graph(self, x):
            x = BatchNorm("bn", tf.reshape(x, [-1, 1]), sync_statistics="horovod")
            return super().build_graph(x)

    weight_after(HorovodTrainer, Normalized())
    assert len(horovod) > 1 + 3  # of "init", and the gradients of three variables
