"""The program: whole runs on a small game, resumed ones, Ctrl-C, and its command line."""

import re
from pathlib import Path

import a3c
import a3c_flags
import numpy as np
import pytest

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.varmanip import load_checkpoint_vars, save_checkpoint_vars
from tensorpack.train import TrainingInterrupted
from tensorpack.utils import logger
from tests.examples.small_dqn import StopAt, read_stats, refusal
from tests.examples.test_a3c_model import ACTIONS, VARIABLES
from tests.RL.catch import CatchPlayer
from tests.RL.players import breakout_rom

# Twenty updates in two epochs, with all that a run does.
SMALL = [
    *["--rom", "catch.bin", "--num-players", "4", "--steps-per-epoch", "10", "--max-epoch", "2"],
    *["--eval-every", "1", "--eval-episodes", "3"],
]
SCALARS = {
    *(f"SummaryGradient/{name}/rms" for name in VARIABLES),
    *(f"param-summary/{name}-rms" for name in VARIABLES if name.endswith("/W")),
    *["cost", "losses/policy_loss", "losses/value_loss", "losses/entropy", "predict_value"],
    *["rollout/mean_score", "rollout/max_score", "mean_score", "max_score", "learning_rate"],
    *["agent_steps", "emulator_frames", "episodes", "hours", "Throughput (steps/sec)"],
    *["epoch_num", "global_step"],
}


def catch(num_envs=4):
    """Frames of 42 x 42, the least that suits the network."""
    return CatchPlayer(num_envs, cell=6)


def train(*more_flags, callbacks=(), resume="never", player=None):
    args = a3c_flags.parse([*SMALL, *more_flags])
    config = a3c.get_config(args, player or catch(), catch, resume)
    config.callbacks.extend(callbacks)
    tp.SimpleTrainer(config).train()


def test_a_run_writes_its_scalars_and_a_model_each_epoch(log_dir):
    train()
    stats = read_stats(log_dir)
    assert [(each["epoch_num"], each["global_step"]) for each in stats] == [(1, 10), (2, 20)]
    assert [set(each) for each in stats] == [SCALARS, SCALARS]
    # a game takes six actions, and a tick to begin the next one
    assert [each["agent_steps"] for each in stats] == [4 * (50 - 7), 4 * (100 - 14)]
    assert [each["episodes"] for each in stats] == [4 * 7, 4 * 14]
    assert stats[1]["learning_rate"] == pytest.approx(3.5e-4)
    saved = load_checkpoint_vars(str(Path(log_dir, "model-20")))
    assert {name: saved[name].shape[:1] for name in VARIABLES}  # all are there


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_a_run_that_was_interrupted_equals_a_whole_one(tmp_path, log_dir):
    flags = ["--deterministic", "--seed", "5"]

    def run(name, stop_at, resume="auto"):
        logger.set_logger_dir(str(tmp_path / name), "k")
        tp.fix_rng_seed(5)
        with tf.Graph().as_default():
            train(*flags, callbacks=[StopAt(stop_at)], resume=resume)

    run("whole", None)
    for step in (7, 13):
        with pytest.raises(TrainingInterrupted):
            run("parts", step)
    run("parts", None, resume="must")
    whole, parts = (
        load_checkpoint_vars(str(tmp_path / each / "model-20")) for each in ("whole", "parts")
    )
    assert sorted(whole) == sorted(parts)
    assert not [name for name in whole if not np.array_equal(whole[name], parts[name])]
    games = [(tmp_path / each / "episodes.csv").read_text() for each in ("whole", "parts")]
    assert games[0] == games[1] and len(games[0].splitlines()) == 1 + 4 * 14
    scores = [
        [each["mean_score"] for each in read_stats(tmp_path / name)] for name in ("whole", "parts")
    ]
    assert scores[0] == scores[1]


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_a_trained_network_is_loaded_evaluated_and_played(tmp_path, log_dir, capsys):
    log = tmp_path / "log"
    same = ["--rom", breakout_rom(), "--seed", "1", "--num-players", "2"]
    short = ["--steps-per-epoch", "2", "--max-epoch", "1", "--eval-every", "9"]
    video = tmp_path / "game.mp4"
    for flags, said in [
        (["--logdir", str(log), *short], "model-2"),
        (["--logdir", str(tmp_path / "other"), "--load", str(log), *short], "model-2"),
        (["--task", "eval", "--load", str(log), "--eval-episodes", "2"], r"Average Score: [\d.]+;"),
        (["--task", "play", "--load", str(log), "--video", str(video)], r"Total: [\d.]+"),
    ]:
        with tf.Graph().as_default():
            a3c.main([*same, *flags])
        assert re.search(said, capsys.readouterr().out)
    assert video.stat().st_size > 10000


def test_a_model_of_another_game_is_not_evaluated(tmp_path, capsys):
    path = str(tmp_path / "model-5")
    save_checkpoint_vars({name: np.zeros(each, "f") for name, each in VARIABLES.items()}, path)
    args = a3c_flags.parse([*SMALL, "--task", "eval", "--load", path])
    player = CatchPlayer()
    assert player.num_actions != ACTIONS
    refused = refusal(capsys, a3c._load_predictor, args, player)
    assert refused.startswith(f"--load {path}: give the game that it was trained on variable ")
    assert f" fc-pi/b float32 [3] float32 [{ACTIONS}] does not fit" in refused
    player.num_actions = ACTIONS
    a3c._load_predictor(args, player).close()
