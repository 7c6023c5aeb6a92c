"""What a training leaves in `run.json`, however it ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorpack
from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.runs import read_record
from tensorpack.train import QueueInputTrainer, SimpleTrainer, StopTraining
from tensorpack.train import record as module
from tensorpack.utils import fix_rng_seed, logger
from tests import helpers
from tests.helpers import TinyModel
from tests.recorded_nvml import RecordedNvml


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


def test_a_run_that_finishes_says_all(log_dir, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["py", "-u", "a.py", "--token", "abc"], raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", RecordedNvml(3))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    fix_rng_seed(5)
    train(ModelSaver(), trainer=QueueInputTrainer, max_epoch=3)
    record = read_record(log_dir)
    (run,) = record["attempts"]
    end = [run[name] for name in ("result", "message", "exit_code", "epoch", "step", "checkpoint")]
    assert end == ["finished", "", 0, 3, 6, "model-6"]
    assert run["started"] <= run["ended"] and 0 < run["seconds"] < 60
    assert (run["command"], run["process"]) == (["py", "-u", "a.py", "--token", "***"], os.getpid())
    assert run["folder"] == os.getcwd() and run["host"] and os.path.isfile(run["script"])
    python = ".".join(map(str, sys.version_info[:3]))
    versions = {"tensorflow": tf.__version__, "python": python, "numpy": np.__version__}
    assert run["versions"] == {"tensorpack": tensorpack.__version__, **versions}
    machine = run["machine"]
    assert machine["cores"] >= 1 and machine["memory"] > 1 << 20 and machine["cpu"]
    assert machine["gpus"] == [{"name": "NVIDIA H100", "memory": 80 << 30}]
    training = run["training"]
    assert training["trainer"] == "QueueInputTrainer" and training["model"] == "TinyModel"
    assert training["input"] == ["QueueInput(DataFromList)"]
    plan = {"steps_per_epoch": 2, "first_epoch": 1, "max_epoch": 3, "first_step": 0}
    how = {"workers": 1, "towers": 1, "precision": None, "deterministic": False, "seed": 5}
    assert {**training, **plan, **how} == training and training["graph_seed"] is not None
    assert record["parameters"] == [["weight", [], "float32"], ["bias", [], "float32"]]


def test_a_resumed_run_adds_an_attempt_before_its_first_step(log_dir):
    seen = []
    looks = Does(lambda _: seen.append(attempts(log_dir)[1]))
    train(ModelSaver())
    train(ModelSaver(), looks, resume="must", max_epoch=2)
    first, second = attempts(log_dir)
    assert (first["step"], second["step"]) == (2, 4)
    training = second["training"]
    assert (training["first_step"], training["resumed_from"]) == (2, "model-2")
    assert seen[0]["training"] == training and "result" not in seen[0]


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


@pytest.mark.parametrize(
    "broken, error",
    [("_machine_facts", ZeroDivisionError("odd")), ("write_atomic", OSError(28, "full"))],
)
def test_trouble_with_the_record_is_no_trouble_for_the_run(
    log_dir, monkeypatch, capsys, broken, error
):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(module, broken, fail)
    train()
    out = capsys.readouterr().out
    assert f"The record of this run is not complete: {error!r}" in out
    assert ("Traceback" in out) == (broken == "_machine_facts")


def test_a_killed_attempt_is_lost_and_what_others_have_written_is_kept(log_dir):
    content = {"format": 1, "attempts": [{"step": 7, "note": "of a user"}], "tags": ["best"]}
    Path(log_dir, "run.json").write_text(json.dumps(content))
    train()
    record = read_record(log_dir)
    assert record["tags"] == ["best"] and len(record["attempts"]) == 2
    assert record["attempts"][0] == {"step": 7, "note": "of a user", "result": "lost"}


def test_a_damaged_record_is_put_aside(log_dir, capsys):
    Path(log_dir, "run.json").write_text("{")
    train()
    assert len(attempts(log_dir)) == 1 and Path(log_dir, "run.json.corrupt").is_file()
    assert capsys.readouterr().out.count("It was renamed to") == 1


def git(folder, *args):
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *args]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode().strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_the_branch_and_whether_a_file_has_changed(tmp_path):
    folder = tmp_path / "top" / "sub"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("pass\n")
    for command in ("init -q", "checkout -q -b topic/one", "add .", "commit -q -m first"):
        git(tmp_path / "top", *command.split())
    (folder / "new.txt").write_text("not tracked")
    facts = {"commit": git(folder, "rev-parse", "HEAD"), "branch": "topic/one", "dirty": False}
    assert module._git_facts(str(folder)) == facts
    (folder / "train.py").write_text("changed\n")
    git(folder, "checkout", "-q", "--detach")
    if os.getuid() == 0:  # as in a container
        os.chown(str(folder.parent), 1234, 1234)
    assert module._git_facts(str(folder)) == {**facts, "branch": None, "dirty": True}
    assert module._git_facts(str(tmp_path)) is None


def test_a_git_that_hangs_or_is_missing(tmp_path, monkeypatch):
    program = tmp_path / "git"
    program.write_text('#!/bin/sh\ncase "$*" in *rev-parse*) echo abc x;; *) exec sleep 60; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(module, "_GIT_SECONDS", 0.3)
    facts = {"commit": "abc", "branch": "x", "dirty": None}
    assert module._git_facts(str(tmp_path)) == facts
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert module._git_facts(str(tmp_path)) is None
