"""A plain run of the session that takes a batch of the training input is warned of, no other."""

import numpy as np
import pytest

from tensorpack.callbacks import Callback, InferenceRunner, MergeAllSummaries, ScalarStats
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import (
    BatchQueueInput,
    QueueInput,
    StagingInput,
    TFDatasetInput,
)
from tensorpack.train import SimpleTrainer
from tensorpack.utils import logger
from tests.helpers import TinyModel, config

PREDICTED = "predicted:0"


def flow():
    ones = np.ones(2, np.float32)
    return DataFromList([[ones * i, ones * i] for i in range(1, 5)], shuffle=False)


def staged():
    return StagingInput(QueueInput(flow()))


class Runs(Callback):
    """Runs the session as scripts do."""

    def __init__(self, run, hook):
        self._run, self.values = run, []
        setattr(self, hook, self._do)

    def _do(self):
        self.values.append(self._run(self.trainer, self.graph.get_tensor_by_name))


@pytest.fixture
def warned(monkeypatch):
    texts = []
    monkeypatch.setattr(logger, "warning", texts.append)
    return lambda: [each for each in texts if "_before_run" in each]


def train(run, source=staged, hook="_trigger_epoch", trainer=SimpleTrainer, **options):
    callbacks = [Runs(run, hook), *options.pop("callbacks", [])]
    with tf.Graph().as_default():
        options = {"data": source(), "model": TinyModel(), "max_epoch": 2, **options}
        tf.placeholder(tf.float32, [], "other")
        trainer(config(callbacks, **options)).train()
    return callbacks[0].values


@pytest.mark.parametrize(
    "source",
    [
        staged,
        lambda: QueueInput(flow()),
        lambda: BatchQueueInput(DataFromList([[1.0, 2.0]]), 2),
        lambda: TFDatasetInput(flow()),
    ],
)
def test_every_input_that_takes_a_batch(warned, source):
    train(lambda trainer, get: trainer.sess.run(PREDICTED), source, max_epoch=1)
    assert len(warned()) == 1
    assert "A run of predicted by trainer.sess.run() or eval()" in warned()[0]
    assert "trainer.hooked_sess.run()" in warned()[0]


@pytest.mark.parametrize(
    "run",
    [
        lambda trainer, get: get(PREDICTED).eval(),
        lambda trainer, get: tf.get_default_session().run({"of": [get(PREDICTED)]}),
        lambda trainer, get: trainer.train_op.run(),
        lambda trainer, get: trainer.sess.run([PREDICTED], {get("other:0"): 2.0}),
    ],
)
def test_every_way_to_run(warned, run):
    train(run, lambda: QueueInput(flow()), "_trigger_step")
    assert len(warned()) == 1  # the second time it is known


@pytest.mark.parametrize(
    "run",
    [
        lambda trainer, get: trainer.sess.run(tf.global_variables() + ["weight:0"]),
        lambda trainer, get: trainer.sess.run(
            PREDICTED, dict(zip(trainer.towers[0].inputs, [[1.0], [2.0]]))
        ),
        lambda trainer, get: trainer.sess.run(PREDICTED, {trainer.towers[0].inputs[0].name: [1.0]}),
        lambda trainer, get: trainer.hooked_sess.run(PREDICTED),
        lambda trainer, get: trainer.hooked_sess.run_unseen(PREDICTED),
    ],
)
def test_other_runs_are_as_they_were(warned, run):
    others = [
        InferenceRunner(QueueInput(flow()), ScalarStats("cost")),
        MergeAllSummaries(period=1, run_alone=True),
    ]
    assert len(train(run, callbacks=others)) == 2
    assert not warned()


def test_a_step_may_read_a_queue_by_the_session(warned):
    class Reads(SimpleTrainer):
        def run_step(self):
            self.sess.run(PREDICTED)
            self.hooked_sess.run(self.train_op)

    train(lambda *args: None, lambda: QueueInput(flow()), trainer=Reads)
    assert not warned()
