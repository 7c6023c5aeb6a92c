"""What each worker of a group does when one ends; the workers are threads of this process here."""

import itertools
import signal
import threading

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.launch import _hosts
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tensorpack.train import CollectiveTrainer, TrainingInterrupted
from tensorpack.train.group import collective
from tensorpack.utils.stopping import Interrupted
from tests.callbacks.driver import log_lines
from tests.helpers import TinyModel, config


class At(Callback):
    """Calls a function with the trainer at a step of one worker; notes the weights of each."""

    _chief_only = False

    def __init__(self, step, action):
        self._step, self._action = step, action

    def _setup_graph(self):
        self.variables = tf.trainable_variables()

    def _trigger_step(self):
        if self.global_step == self._step:
            self._action(self.trainer)

    def _after_train(self):
        self.weights = self.trainer.sess.run(self.variables)


class Counting(TinyModel):
    """With a variable that no gradient changes, so that each worker has its own."""

    def build_graph(self, x, y):
        tf.get_variable("own", [], initializer=tf.zeros_initializer(), trainable=False)
        return super().build_graph(x, y)


class Workers:
    """Two workers that train until one does something in its third step.

    Args:
      action: what worker 1 calls with its trainer.
      save_in: the directory in which each has a directory for its checkpoints, None for no saver.

    Attributes:
      addresses: of both.
      steps: how many each has taken.
      weights: those of each at the end.
      errors: what each has raised, None for nothing.
    """

    def __init__(self, action, save_in=None):
        self._save_in = save_in
        clusters = _hosts.on_this_machine(2, 0)
        self.addresses = [each.address for each in clusters]
        self.steps, self.weights, self.errors = [None, None], [None, None], [None, None]
        # worker 1 on another thread, as only the main one hears of signals
        other = threading.Thread(target=self._train, args=[1, clusters[1], action])
        other.start()
        self._train(0, clusters[0], lambda trainer: None)
        other.join(60)

    def _train(self, index, cluster, action):
        look = At(3, action)
        callbacks = [look]
        if self._save_in is not None:
            callbacks.append(ModelSaver(checkpoint_dir=str(self._save_in / str(index))))
        data = DataFromList([[np.float32([1, index]), np.float32([2, 3])]])
        with tf.Graph().as_default():
            trainer = CollectiveTrainer(
                config(callbacks, model=Counting(), dataflow=data, steps_per_epoch=10000),
                cluster,
                timeout=20.0,
            )
            try:
                trainer.train()
            except BaseException as error:
                self.errors[index] = error
        self.steps[index], self.weights[index] = trainer.loop.steps_taken, look.weights


@pytest.fixture
def train(monkeypatch):
    # Trainers of one process are runs after one another, elsewhere.
    monkeypatch.setattr(collective, "_runs", itertools.repeat(0))
    return Workers


def test_a_signal_at_one_ends_both_after_the_same_step(train, capsys):
    workers = train(lambda trainer: trainer.signal_token.request(Interrupted(signal.SIGTERM)))
    assert [type(each) for each in workers.errors] == [TrainingInterrupted] * 2
    assert [each.code for each in workers.errors] == [143, 143]
    assert workers.steps == [4, 4] and workers.weights[0] == workers.weights[1]
    said = f"SIGTERM at worker 1 at {workers.addresses[1]} ends all workers."
    assert log_lines(capsys).count(said) == 2


@pytest.mark.slow
def test_a_signal_at_one_saves_both_and_each_what_is_its_own(train, tmp_path):
    train(lambda trainer: trainer.signal_token.request(Interrupted(signal.SIGTERM)), tmp_path)
    chief, other = [set(load_checkpoint_vars(str(tmp_path / each / "model-4"))) for each in "01"]
    assert {"global_step", "weight", "bias", "own"} <= chief
    assert {"global_step", "own"} <= other and not {"weight", "bias"} & other


def test_the_workers_are_those_of_the_environment_unless_it_is_alone(monkeypatch):
    cluster = _hosts.on_this_machine(2, 0)[1]
    monkeypatch.setenv("TF_CONFIG", cluster.as_tf_config())
    assert CollectiveTrainer().cluster == cluster
    assert CollectiveTrainer(alone=True).cluster is None
