import os
import signal
import time

import numpy as np
import pytest

from tensorpack.callbacks import ModelSaver, PeriodicTrigger, ProcessTensors
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.models import Dropout
from tensorpack.tfutils import load_checkpoint_vars
from tensorpack.train import SimpleTrainer, TrainConfig, TrainingInterrupted
from tensorpack.train.determinism import fix_draws, fix_graph_seed, one_thread
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.rng import _streams
from tests import helpers
from tests.helpers import TinyModel
from tests.train.test_multi_tower import StopAt
from tests.train.test_simple import flow


@pytest.fixture(autouse=True)
def unseeded(monkeypatch):
    monkeypatch.setattr(_streams, "seeded", False)


@pytest.fixture
def seeded(unseeded):
    fix_rng_seed(3)


def config(**options):
    return TrainConfig(steps_per_epoch=1, max_epoch=1, monitors=[], **options)


def test_it_needs_a_seed():
    with pytest.raises(ValueError, match=r"call tensorpack.utils.fix_rng_seed\(N\) first"):
        config(deterministic=True)


def test_xla_is_refused(seeded):
    with pytest.raises(ValueError, match="deterministic=True excludes xla=True"):
        config(deterministic=True, xla=True)


def test_a_config_of_the_users_gets_one_thread_and_is_copied(seeded):
    given = tf.ConfigProto(inter_op_parallelism_threads=2, device_count={"CPU": 3})
    session = config(deterministic=True, session_config=given).session_creator.config
    assert session.intra_op_parallelism_threads == session.inter_op_parallelism_threads == 1
    assert session.device_count == given.device_count and given.inter_op_parallelism_threads == 2


def test_the_graph_seed_follows_from_that_of_the_process_and_the_worker(seeded):
    def seeds():
        graphs = [tf.Graph() for _ in range(3)]
        fix_graph_seed(graphs[0])
        for worker, graph in enumerate(graphs):
            fix_graph_seed(graph, worker)
            fix_graph_seed(graph)  # stays
        return [graph.seed for graph in graphs]

    first = seeds()
    assert seeds() == first and len(set(first)) == 3
    fix_rng_seed(4)
    assert not set(seeds()) & set(first)


def test_a_graph_seed_of_the_users_stays_and_without_a_seed_there_is_none():
    graphs = [tf.Graph(), tf.Graph()]
    fix_graph_seed(graphs[0])
    graphs[1].seed = 17
    fix_rng_seed(3)
    fix_graph_seed(graphs[1])
    assert [each.seed for each in graphs] == [None, 17]


@pytest.mark.parametrize("draws, once", [("gamma", True), ("uniform", False)])
def test_what_cannot_follow_from_the_step_is_warned_of(draws, once, capsys):
    draw = getattr(tf.random, draws)([2], 1.0, name="draw")
    with tf.control_dependencies([draw]):
        fix_draws(tf.get_variable("v", [2]).assign_add([1.0, 1.0]).op, once)
    said = capsys.readouterr().out
    assert f"draw/Random{draws.title()}" in said and "v/Initializer" not in said


class Noisy(TinyModel):
    """Its cost depends on dropout and on noise."""

    def build_graph(self, x, y):
        noise = tf.random.normal(tf.shape(x)) * 0.1
        return super().build_graph(Dropout(x + noise, 0.5, training=True), y)


def weights_of_a_run(directory, stop_at=None, resume="never"):
    """Trains 6 steps, or less, and returns the weights and the costs of the steps."""
    fix_rng_seed(3)
    costs = []
    with tf.Graph().as_default() as graph:
        trainer = SimpleTrainer(
            helpers.config(
                [
                    PeriodicTrigger(ModelSaver(checkpoint_dir=str(directory)), every_k_steps=2),
                    ProcessTensors(["cost"], lambda cost: costs.append(float(cost))),
                    *([StopAt(stop_at)] if stop_at else []),
                ],
                model=Noisy(),
                dataflow=flow(),
                steps_per_epoch=3,
                max_epoch=2,
                deterministic=True,
                resume=resume,
            )
        )
        trainer.train()
        del graph
    return costs, load_checkpoint_vars(str(directory))


@pytest.mark.parametrize("stop_at", [2, 4])
def test_a_resumed_run_draws_what_an_unbroken_one_draws(stop_at, tmp_path, capsys):
    costs, weights = weights_of_a_run(tmp_path / "whole")
    assert len(set(costs)) == 6
    first, _ = weights_of_a_run(tmp_path / "parts", stop_at)
    then, resumed = weights_of_a_run(tmp_path / "parts", resume=str(tmp_path / "parts"))
    assert first + then == costs
    assert {*resumed} == {*weights}
    assert all(np.array_equal(resumed[name], weights[name]) for name in weights)
    assert "draw random numbers" not in capsys.readouterr().out


def test_one_thread_runs_the_ops_whatever_sessions_there_were_before():
    running, most = [], []

    def run():
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return np.float32(1)

    ops = [tf.py_func(run, [], tf.float32) for _ in range(4)]
    with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=4)) as sess:
        sess.run(tf.constant(1))  # makes the threads that other sessions share
    with tf.Session(config=one_thread()) as sess:
        sess.run(ops)
    assert most == [1] * 4


class CutOff(DataFlow):
    """A datapoint of the run asks for its end in the middle of what makes it."""

    made = 0

    def __iter__(self):
        for datapoint in flow():
            if self.made == 2:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)  # Python handles the signal
            self.made += 1
            yield datapoint


@pytest.mark.parametrize("source", [QueueInput, FeedInput])
def test_a_signal_does_not_cut_a_datapoint_off(seeded, source):
    # What makes it may have a state of its own, as a replay memory with its games.
    data = CutOff()
    trainer = SimpleTrainer(
        helpers.config(model=TinyModel(), data=source(data), steps_per_epoch=9, deterministic=True)
    )
    with pytest.raises(TrainingInterrupted):
        trainer.train()
    assert (data.made, trainer.loop.steps_taken) == (3, 3)
