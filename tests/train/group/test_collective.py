"""The workers of an all-reduce, as threads of this process; and what is refused."""

import itertools
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.launch import _hosts
from tensorpack.train import CollectiveTrainer, TrainingInterrupted
from tensorpack.train.group import trainer as group_trainer
from tensorpack.train.multigpu import MultiTowerTrainer
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.stopping import Interrupted, StopRequested
from tests.callbacks.driver import log_lines
from tests.helpers import TinyModel, config


class SignalAt(Callback):
    """Tells the trainer of worker 1 of a signal in its third step; notes the weights of each."""

    _chief_only = False

    def _trigger_step(self):
        if self.global_step == 3 and not self.trainer.is_chief:
            self.trainer.signal_token.request(Interrupted(signal.SIGTERM))

    def _after_train(self):
        self.weights = self.trainer.sess.run(tf.trainable_variables())


def test_a_signal_at_one_ends_both_after_the_same_step(monkeypatch, capsys):
    # Trainers of one process are runs after one another, elsewhere.
    monkeypatch.setattr(group_trainer, "_runs", itertools.repeat(0))
    clusters = _hosts.on_this_machine(2, 0)

    def train(index):
        look = SignalAt()
        data = DataFromList([[np.float32([1, index]), np.float32([2, 3])]])
        own = config([look], model=TinyModel(), dataflow=data, steps_per_epoch=10000)
        with tf.Graph().as_default():
            trainer = CollectiveTrainer(own, clusters[index], timeout=20.0)
            with pytest.raises(TrainingInterrupted) as raised:
                trainer.train()
        return raised.value.code, trainer.steps_taken, look.weights

    with ThreadPoolExecutor(2) as pool:
        chief, other = pool.map(train, range(2))
    assert chief == other and chief[:2] == (143, 4) and not np.allclose(chief[2], 0)
    said = f"SIGTERM at worker 1 at {clusters[1].address} ends all workers."
    assert log_lines(capsys).count(said) == 2


def test_the_workers_are_those_of_the_environment_unless_it_is_alone(monkeypatch):
    cluster = _hosts.on_this_machine(2, 0)[1]
    monkeypatch.setenv("TF_CONFIG", cluster.as_tf_config())
    assert CollectiveTrainer().cluster == cluster
    assert CollectiveTrainer(alone=True).cluster is None


def test_what_is_refused():
    with pytest.raises(ValueError, match="start it with --ps 0"):
        CollectiveTrainer(cluster=Cluster(("localhost:1", "localhost:2"), ("localhost:3",)))
    with pytest.raises(ValueError, match="compression is None or 'fp16', got 'gzip'"):
        CollectiveTrainer(compression="gzip")


def test_a_step_that_a_lost_worker_has_cut_off_after_a_signal_is_not_saved(monkeypatch):
    def fail(self):
        raise tf.errors.UnavailableError(None, None, "Socket closed")

    monkeypatch.setattr(MultiTowerTrainer, "_loop", fail)
    trainer = CollectiveTrainer(cluster=Cluster(("localhost:1", "localhost:2")))
    trainer.begun, trainer.global_step, trainer.steps_taken = True, 3, 2
    trainer.signal_token.request(Interrupted(signal.SIGTERM))
    assert not trainer.stop_token.requested  # until all have come to the same step
    with pytest.raises(StopRequested):
        trainer._loop()
    assert trainer.stop_token.reason == Interrupted(signal.SIGTERM)
    with pytest.raises(RuntimeError, match="a part of a step may be in the variables"):
        trainer._save_at_end()
