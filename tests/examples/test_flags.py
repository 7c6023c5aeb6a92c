"""The command line: its defaults, and messages about wrong flags."""

import os
import re

import flags
import pytest

from tests.examples.running import refusal

DEFAULTS = {
    "algo": "Double",
    "task": "train",
    "num_players": 1,
    "batch_size": 64,
    "update_freq": 4,
    "memory_size": 1000000,
    "init_memory_size": 50000,
    "steps_per_epoch": 25000,
    "max_epoch": 1000,
    "target_sync": 2500,
    "eval_every": 10,
    "eval_episodes": 50,
    "logdir": "train_log/DQN-breakout",
    "load": None,
    "gpu": None,
    "seed": None,
    "video": None,
    "resume": "never",
    "deterministic": False,
    "precision": "fp32",
    "xla": False,
    "actors": False,
    "weights_every": 200,
    "key": None,
    "towers": 1,
}


def test_the_defaults():
    args = vars(flags.parse(["--rom", "breakout.bin"]))
    assert args.pop("rom") == "breakout.bin"
    assert args == DEFAULTS


def test_the_log_directory_is_named_after_the_game():
    assert flags.parse(["--rom", "/roms/pong.bin"]).logdir == "train_log/DQN-pong"
    assert flags.parse(["--rom", "pong.bin", "--logdir", "here"]).logdir == "here"


@pytest.mark.parametrize(
    "line, message",
    [
        ("", "the following arguments are required: --rom"),
        ("--rom a.bin --batch-size 0", "--batch-size: must be a whole number of at least 1"),
        ("--rom a.bin --memory-size 1e6", "--memory-size: must be a whole number.*'1e6'"),
        ("--rom a.bin --algo Rainbow", "invalid choice: 'Rainbow'"),
        ("--rom a.bin --memory-size 100", "--init-memory-size 50000 is more than --memory-size"),
        ("--rom a.bin --task eval", "--task eval needs a model: --load"),
        ("--rom a.bin --task play --load nowhere", "--load nowhere: there is no such checkpoint"),
        ("--rom a.bin --seed -1", "--seed: must be a whole number of at least 0"),
        ("--rom a.bin --resume atuo", "--resume atuo: it must be one of never, auto, must, or an"),
        ("--rom a.bin --resume auto --load .", "--resume and --load exclude .* the weights alone"),
        ("--rom a.bin --resume auto --task eval --load .", "--resume is for --task train"),
        ("--rom a.bin --deterministic", "--deterministic needs a seed: --seed N"),
        ("--rom a.bin --deterministic --seed 1 --num-players 2", "--num-players 1, got 2"),
        ("--rom a.bin --deterministic --seed 1 --task play --load .", "is for --task train"),
        ("--rom a.bin --deterministic --seed 1 --xla", "--deterministic and --xla exclude each"),
        ("--rom a.bin --actors --task play --load .", "--actors is for --task train"),
        ("--rom a.bin --actors --seed 1 --deterministic", "--deterministic and --actors exclude"),
        ("--rom a.bin --actors --resume must", "--resume must and --actors exclude .* not saved"),
        ("--rom a.bin --actors --key nowhere", "--key nowhere: there is no such file"),
        ("--rom a.bin --key .", "--key is for --actors"),
        ("--rom a.bin --towers 3", "--batch-size 64 is not a multiple of --towers 3"),
        ("--rom a.bin --precision fp16", "invalid choice: 'fp16'"),
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


def test_a_path_to_resume_and_another_log_directory_exclude_each_other(tmp_path, capsys):
    line = ["--rom", "a.bin", "--resume", str(tmp_path), "--logdir", "other"]
    said = refusal(capsys, flags.parse, line)
    assert f"--resume {tmp_path} writes to {tmp_path}" in said
    assert "--logdir other is not possible: leave it out" in said


@pytest.mark.parametrize("files", [["model-5.index"], ["model-5"], ["model-5/checkpoint"]])
def test_a_model_is_a_prefix_a_file_or_a_directory(files, tmp_path):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    args = flags.parse(["--rom", "a.bin", "--load", str(tmp_path / "model-5")])
    assert args.load == str(tmp_path / "model-5")


def test_every_flag_is_explained_with_its_default(capsys):
    with pytest.raises(SystemExit) as exit:
        flags.parse(["--help"])
    assert exit.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name in DEFAULTS:
        assert "--" + name.replace("_", "-") in text
    assert "(default: None)" not in text
    assert "steps (batches) in an epoch (default: 25000)" in text
