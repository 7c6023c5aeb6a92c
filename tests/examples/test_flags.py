"""The command line: its defaults, messages about wrong flags, the commands named at the end."""

import os
import re
import shlex
import sys

import a3c_flags
import flags
import pytest
from algorithm import PRESETS, Algorithm

from tests.examples.conftest import EXAMPLE, EXAMPLES
from tests.examples.small_dqn import refusal

SCRIPT = EXAMPLE / "DQN.py"


def parse(*line):
    return flags.parse(["--rom", "breakout.bin", *line])


DEFAULTS = {
    name: value for name, value in vars(parse()).items() if name not in ("algorithm", "script")
}


def test_the_log_directory_is_named_after_the_game():
    assert flags.parse(["--rom", "/roms/pong.bin"]).logdir == "train_log/DQN-pong"
    assert flags.parse(["--rom", "pong.bin", "--logdir", "here"]).logdir == "here"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_sets_flags_that_exist_to_values_that_are_valid(name):
    assert set(PRESETS[name]) <= set(DEFAULTS)
    args = parse("--preset", name)
    assert {**DEFAULTS, **PRESETS[name], "preset": name}.items() <= vars(args).items()
    argv = []
    for flag, value in PRESETS[name].items():
        text = "--" + flag.replace("_", "-")
        if isinstance(value, bool):
            argv.append(text if value else text.replace("--", "--no-"))
        else:
            argv += [text, str(value)]
    assert vars(parse(*argv)) == {**vars(args), "preset": "2017"}


def test_a_flag_overrides_its_preset_wherever_it_stands():
    for line in (["--batch-size", "64", "--preset", "rainbow"], ["--preset", "rainbow"]):
        args = parse(*line, "--life-loss-ends", "--algo", "QR", "--n-step", "1")
        assert args.batch_size == (64 if len(line) > 2 else 32)
        assert (args.life_loss_ends, args.algo, args.n_step) == (True, "QR", 1)
        assert args.algorithm == parse("--preset", "rainbow").algorithm._replace(
            learns="qr", n_step=1
        )


@pytest.mark.parametrize(
    "line, algorithm",
    [
        ("", Algorithm()),
        ("--algo Dueling --double", Algorithm(dueling=True)),
        ("--algo C51 --dueling --noisy", Algorithm("c51", double=False, dueling=True, noisy=True)),
        (
            "--priority 0.6 --discount 0.995 --network nature --loss mse",
            Algorithm(priority=0.6, discount=0.995, network="nature", loss="mse"),
        ),
        (
            "--optimizer rmsprop --learning-rate 1e-4 --optimizer-epsilon .1 --max-gradient-norm 0",
            Algorithm(optimizer="rmsprop", learning_rate=1e-4, epsilon=0.1, max_gradient_norm=0.0),
        ),
    ],
)
def test_the_algorithm_of_the_flags(line, algorithm):
    assert parse(*line.split()).algorithm == algorithm


@pytest.mark.parametrize(
    "line, message",
    [
        ("", "the following arguments are required: --rom"),
        ("--rom a.bin --batch-size 0", "--batch-size: '0' is not a number from 1 on"),
        (
            "--rom a.bin --preset fast --double",
            r"^--munchausen \(of --preset fast\) excludes --double: add --no-munchausen$",
        ),
        (
            "--rom a.bin --atoms 51",
            "^--atoms 51 has no effect with --algo Double: leave --atoms out$",
        ),
        ("--rom a.bin --task play --load nowhere", "--load nowhere: there is no such checkpoint"),
        ("--rom a.bin --resume atuo", "--resume atuo: it must be one of never, auto, must, or an"),
        ("--rom a.bin --resume auto --load .", "--resume and --load exclude .* the weights alone"),
        ("--rom a.bin --deterministic", "--deterministic needs a seed: --seed N"),
    ],
)
def test_mistakes_are_named(line, message, capsys):
    assert re.search(message, refusal(capsys, flags.parse, line.split()))


def test_a_path_to_resume_brings_its_log_directory(tmp_path):
    (tmp_path / "model-5.index").touch()
    line = ["--rom", "a.bin", "--resume"]
    for path in [str(tmp_path), str(tmp_path / "model-5")]:
        assert flags.parse([*line, path]).logdir == str(tmp_path)
        same = os.path.join(str(tmp_path), ".")
        assert flags.parse([*line, path, "--logdir", same]).logdir == same


def test_every_flag_is_explained_with_its_default(capsys):
    with pytest.raises(SystemExit) as exit:
        flags.parse(["--help"])
    assert exit.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in DEFAULTS:
        assert "--" + name.replace("_", "-") in text
    assert "(default: None)" not in text and "default: yes" in text
    assert "steps (batches) in an epoch (default: 25000)" in text


RUN = ["--rom", "my game.bin", "--max-epoch", "7"]
MODEL_FLAGS = {
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
        values = parsed(commands[purpose], tmp_path)
        assert (values["task"], values["load"]) == (task, str(tmp_path))
        same = ["rom", "algorithm", "sticky", "life_loss_ends", "max_frames", "eval_epsilon"]
        assert {name: values[name] for name in same} == {name: vars(args)[name] for name in same}
        assert "--seed" not in commands[purpose]


def test_defaults_are_left_out_and_options_of_python_are_not(monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    argv = ["examples/DeepQNetwork/DQN.py", "--rom", "pong", "--logdir", "train_log/DQN-pong"]
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-u", *argv], raising=False)
    log_dir = os.path.abspath("train_log/DQN-pong")
    commands = flags.commands_of(flags.parse(["--rom", "pong"]), log_dir)
    command = "python -u examples/DeepQNetwork/DQN.py --rom pong --resume auto"
    assert commands["resume"] == command
    monkeypatch.setattr(sys, "executable", "python")
    a3c = a3c_flags.commands_of(a3c_flags.parse(["--rom", "pong"]), "train_log/A3C-pong")
    assert a3c["watch it play"] == (
        "python examples/A3C/a3c.py --rom pong --task play --load {model}"
    )
