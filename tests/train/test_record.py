"""What a training leaves in `run.json`, however it ends."""

import os
import signal

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.runs.record import read_record
from tensorpack.train import QueueInputTrainer, SimpleTrainer, StopTraining
from tensorpack.utils import fix_rng_seed, logger
from tests import helpers
from tests.helpers import TinyModel


def config(*callbacks, **options):
    flow = DataFromList([[np.ones(2, np.float32)] * 2] * 3, shuffle=False)
    return helpers.config(callbacks, model=TinyModel(), dataflow=flow, **options)


def train(*callbacks, trainer=SimpleTrainer, **options):
    with tf.Graph().as_default():
        trainer(config(*callbacks, **options)).train()


def attempts(directory):
    return read_record(directory)["attempts"]


class Does(Callback):
    """Calls a function after each step."""

    def __init__(self, function):
        self._function = function

    def _trigger_step(self):
        self._function(self)


def test_a_run_that_finishes_says_all(log_dir):
    fix_rng_seed(5)
    train(ModelSaver(), trainer=QueueInputTrainer, max_epoch=3)
    record = read_record(log_dir)
    (run,) = record["attempts"]
    end = [run[name] for name in ("result", "message", "exit_code", "epoch", "step", "checkpoint")]
    assert end == ["finished", "", 0, 3, 6, "model-6"]
    assert run["started"] <= run["ended"] and 0 < run["seconds"] < 60
    assert run["versions"]["tensorflow"] == tf.__version__
    training = run["training"]
    assert training["trainer"] == "QueueInputTrainer" and training["model"] == "TinyModel"
    assert training["input"] == ["QueueInput(DataFromList)"]
    plan = {"steps_per_epoch": 2, "first_epoch": 1, "max_epoch": 3, "first_step": 0}
    how = {"workers": 1, "towers": 1, "precision": None, "deterministic": False, "seed": 5}
    assert {**training, **plan, **how} == training and training["graph_seed"] is not None
    assert record["parameters"] == [["weight", [], "float32"], ["bias", [], "float32"]]


def test_it_is_there_before_the_first_step_and_without_an_end(log_dir):
    seen = []
    train(Does(lambda _: seen.append(attempts(log_dir)[0])), steps_per_epoch=1)
    assert seen[0]["training"]["first_step"] == 0 and "result" not in seen[0]


def test_a_resumed_run_adds_a_attempt(log_dir):
    train(ModelSaver())
    train(ModelSaver(), resume="must", max_epoch=2)
    first, second = attempts(log_dir)
    assert (first["step"], second["step"]) == (2, 4)
    assert second["training"]["first_step"] == 2
    assert second["training"]["resumed_from"] == "model-2"


def test_a_setup_that_fails_is_recorded(log_dir):
    class Breaks(Callback):
        def _setup_graph(self):
            raise ValueError("no such <b>tensor</b>")

    train(ModelSaver())
    with pytest.raises(ValueError):
        train(Breaks())
    earlier, run = attempts(log_dir)
    progress = [[each[name] for name in ("step", "epoch", "best")] for each in (earlier, run)]
    assert progress == [[2, 1, []]] * 2  # the run is still as far
    assert (run["result"], run["message"]) == ("failed", "ValueError: no such <b>tensor</b>")
    assert run["training"]["trainer"] == "SimpleTrainer"


def test_a_signal_and_a_stop_are_told_apart(log_dir):
    def interrupt(callback):
        os.kill(os.getpid(), signal.SIGTERM)
        callback.trainer.stop_token.wait(5)

    def stop(_):
        raise StopTraining("good enough")

    with pytest.raises(SystemExit):
        train(Does(interrupt), ModelSaver())
    train(Does(stop))
    first, second = attempts(log_dir)
    assert (first["result"], first["exit_code"]) == ("stopped", 143)
    assert (first["message"], first["checkpoint"]) == ("SIGTERM", "model-1")
    assert (second["result"], second["exit_code"]) == ("finished", 0)
    assert second["message"] == "StopTraining: good enough"


def test_other_workers_and_runs_without_a_directory_write_nothing(log_dir):
    with tf.Graph().as_default():
        trainer = SimpleTrainer(config())
        trainer.is_chief = False
        trainer.train()
    assert read_record(log_dir) is None
    logger.close_logger_dir()
    train()


def test_a_directory_that_is_set_late_gets_the_whole_record(log_dir):
    class SetsIt(Callback):
        def _setup_graph(self):
            logger.set_logger_dir(log_dir, action="k")

    logger.close_logger_dir()
    train(SetsIt())
    (run,) = attempts(log_dir)
    assert run["result"] == "finished" and run["versions"] and run["training"]["model"]


def test_trouble_with_the_record_is_no_trouble_for_the_run(log_dir, monkeypatch, capsys):
    def broken(*args):
        raise ZeroDivisionError("in the record")

    monkeypatch.setattr("tensorpack.train.record.machine_facts", broken)
    train()
    out = capsys.readouterr().out
    assert "The record of this run is not complete" in out and "in the record" in out
