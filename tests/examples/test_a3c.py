"""The program: whole runs on a small game, resumed ones, Ctrl-C, and its command line."""

import re
from pathlib import Path

import a3c
import a3c_flags
import pytest

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.examples.small_dqn import interrupt_twice, read_stats
from tests.examples.test_a3c_model import VARIABLES
from tests.examples.test_exact import assert_equal_runs
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
    assert [(epoch["epoch_num"], epoch["global_step"]) for epoch in stats] == [(1, 10), (2, 20)]
    assert [set(epoch) for epoch in stats] == [SCALARS, SCALARS]
    # a game takes six actions, and a tick to begin the next one
    assert [epoch["agent_steps"] for epoch in stats] == [4 * (50 - 7), 4 * (100 - 14)]
    assert [epoch["episodes"] for epoch in stats] == [4 * 7, 4 * 14]
    assert stats[1]["learning_rate"] == pytest.approx(3.5e-4)
    saved = load_checkpoint_vars(str(Path(log_dir, "model-20")))
    assert {name: saved[name].shape[:1] for name in VARIABLES}  # all are there


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_a_run_that_was_interrupted_equals_a_whole_one(tmp_path, log_dir):
    whole, parts = interrupt_twice(train, tmp_path)
    assert_equal_runs(whole, parts, 20)
    assert len((whole / "episodes.csv").read_text().splitlines()) == 1 + 4 * 14


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
