"""The commands that a run names at its end do what it says."""

import os
import shlex
import sys

import a3c_flags
import flags
import pytest

from tests.examples.conftest import EXAMPLE, EXAMPLES

SCRIPT = EXAMPLE / "DQN.py"
RUN = ["--rom", "my game.bin", "--max-epoch", "7"]
MODEL_FLAGS = {
    "values": ["--algo", "Dueling", "--no-double"],
    "preset": ["--preset", "fast", "--no-munchausen", "--sticky", "0.1", "--no-life-loss-ends"],
    "network": ["--algo", "IQN", "--atoms", "16", "--noisy", "--optimizer-epsilon", "3e-05"],
}


def parsed(command, tmp_path):
    """The flags of a command, with a model that exists."""
    python, script, *argv = shlex.split(command.replace("{model}", str(tmp_path)))
    assert [os.path.abspath(python), os.path.abspath(script)] == [sys.executable, str(SCRIPT)]
    return vars(flags.parse(argv))


@pytest.mark.parametrize("more", MODEL_FLAGS.values(), ids=MODEL_FLAGS)
def test_each_command_has_the_flags_of_the_run(more, tmp_path):
    args = flags.parse([*RUN, *more, "--load", str(tmp_path), "--seed", "3", "--video", "x"])
    commands = flags.commands_of(args, "train_log/DQN-my game-1")
    assert list(commands) == ["resume", "evaluate it", "watch it play"]

    others = {"load": None, "resume": "auto", "logdir": "train_log/DQN-my game-1", "video": None}
    assert parsed(commands["resume"], tmp_path) == {**vars(args), **others}

    for purpose, task in [("evaluate it", "eval"), ("watch it play", "play")]:
        found = parsed(commands[purpose], tmp_path)
        assert (found["task"], found["load"]) == (task, str(tmp_path))
        same = ["rom", "algorithm", "sticky", "life_loss_ends", "max_frames", "eval_epsilon"]
        assert {name: found[name] for name in same} == {name: vars(args)[name] for name in same}
        assert "--seed" not in commands[purpose]


def test_defaults_are_left_out(monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    monkeypatch.setattr("shutil.which", lambda name: sys.executable)
    log_dir = os.path.abspath("train_log/DQN-pong")
    commands = flags.commands_of(flags.parse(["--rom", "pong"]), log_dir)
    command = "python examples/DeepQNetwork/DQN.py --rom pong --resume auto"
    assert commands["resume"] == command
    a3c = a3c_flags.commands_of(a3c_flags.parse(["--rom", "pong"]), "train_log/A3C-pong")
    assert a3c["watch it play"] == (
        "python examples/A3C/a3c.py --rom pong --task play --load {model}"
    )


def test_a_group_is_started_by_the_launcher():
    args = flags.parse(["--rom", "pong", "--actors"])
    commands = flags.commands_of(args, "train_log/DQN-pong")
    assert commands["resume"] == "the same command with --resume auto, for the whole group"
    assert "--actors" not in commands["evaluate it"]
