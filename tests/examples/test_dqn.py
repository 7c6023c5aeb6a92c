"""The program: whole runs on a small game, and what it refuses."""

import os
from contextlib import ExitStack

import DQN
import numpy as np
import pytest
import scores

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.sessinit import VariableMismatch
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tensorpack.train import TrainingInterrupted
from tensorpack.utils import logger
from tests.examples.catch import CountingCatch
from tests.examples.small_dqn import StopAt, read_stats, refusal, small_catch, train
from tests.examples.test_dqn_model import VARIABLES
from tests.RL.players import breakout_rom

SCALARS = {
    *(f"SummaryGradient/{name}/rms" for name in VARIABLES),
    *(f"param-summary/{layer}/W-rms" for layer in ["conv0", "conv1", "conv2", "fc0", "fct"]),
    *["cost", "predict_reward", "input_queue_size", "learning_rate"],
    *["expreplay/mean_score", "expreplay/max_score", "mean_score", "max_score"],
    *["agent_steps", "emulator_frames", "episodes", "exploration", "hours"],
    *["Throughput (steps/sec)", "epoch_num", "global_step"],
}


def test_a_run_writes_its_scalars_and_a_model_each_epoch(log_dir):
    train(small_catch(num_envs=2))
    stats = read_stats(log_dir)
    assert [(each["epoch_num"], each["global_step"]) for each in stats] == [(1, 10), (2, 20)]
    assert [set(each) for each in stats] == [SCALARS, SCALARS]
    assert stats[0]["learning_rate"] == pytest.approx(1e-3)
    assert os.path.basename(tf.train.latest_checkpoint(log_dir)) == "model-20"
    # The target network is updated after step 4, 8, 12, 16 and 20; model-20 is saved after that.
    for step, same in [(10, False), (20, True)]:
        saved = load_checkpoint_vars(os.path.join(log_dir, f"model-{step}"))
        assert saved["global_step"] == step
        assert np.array_equal(saved["fct/W"], saved["target/fct/W"]) == same


@pytest.mark.one_row
@pytest.mark.slow
def test_load_takes_the_weights_and_starts_over(log_dir):
    train(small_catch(), "--max-epoch", "1", "--eval-every", "9")
    trained = load_checkpoint_vars(os.path.join(log_dir, "model-10"))
    np.savez(os.path.join(log_dir, "weights.npz"), **{name: trained[name] for name in VARIABLES})
    with tf.Graph().as_default():
        flags = ["--max-epoch", "1", "--eval-every", "9", "--steps-per-epoch", "1"]
        train(small_catch(), *flags, "--load", os.path.join(log_dir, "weights.npz"))
    again = load_checkpoint_vars(os.path.join(log_dir, "model-1"))
    # one step of Adam changes no weight by more than its rate
    for name in VARIABLES:
        np.testing.assert_allclose(again[name], trained[name], atol=1.1e-3)


def test_a_resumed_run_continues_with_the_memory_and_the_games(log_dir, lines):
    train(small_catch(kind=CountingCatch), "--max-epoch", "1")
    assert "Populating replay memory with epsilon=1.0 ..." in lines
    del lines[:]
    player, steps = small_catch(kind=CountingCatch), []
    player.during_step = lambda: steps.append(player.played)
    with tf.Graph().as_default():
        train(player, resume="must")
    assert not [line for line in lines if line.startswith("Populating")]
    stats = read_stats(log_dir)
    assert [(each["epoch_num"], each["global_step"]) for each in stats] == [(1, 10), (2, 20)]
    assert player.resets == 0 and len(steps) >= 20
    assert 60 + 4 * 10 <= stats[0]["agent_steps"] < stats[1]["agent_steps"]
    assert [each["exploration"] for each in stats] == [1.0, 0.91]
    check_games(log_dir, stats)


def check_games(log_dir, stats):
    """Every game of the training is in `episodes.csv` once: they follow each other."""
    with open(os.path.join(log_dir, "episodes.csv")) as file:
        games = np.loadtxt(file, delimiter=",", skiprows=1)
    # a game takes six steps, and the next one begins at once
    assert games[:, 0].tolist() == list(range(6, 6 * len(games) + 1, 6))
    assert (games[:, 2] == 6).all()
    assert len(games) == stats[-1]["episodes"]
    assert stats[0]["episodes"] < len(games) <= stats[-1]["agent_steps"] // 6


@pytest.mark.one_row
@pytest.mark.slow
def test_a_run_of_several_attempts_is_one_curve(log_dir):
    for stop_at in (7, 13, None):  # in both epochs
        with tf.Graph().as_default(), ExitStack() as stack:
            if stop_at is not None:
                stack.enter_context(pytest.raises(TrainingInterrupted))
            train(small_catch(), callbacks=[StopAt(stop_at)], resume="auto")
    stats = read_stats(log_dir)
    assert [(each["epoch_num"], each["global_step"]) for each in stats] == [(1, 10), (2, 20)]
    for name in ("agent_steps", "emulator_frames", "episodes", "hours"):
        assert 0 < stats[0][name] < stats[1][name]
    check_games(log_dir, stats)
    run = scores.read_run(log_dir)
    curve = scores.training_curve(run, "steps", window=12)
    assert len(curve.x) == stats[1]["agent_steps"] // 12
    assert set(curve.y[:-1]) <= {-1.0, 0.0, 1.0}  # of two games each


@pytest.mark.one_row
@pytest.mark.slow
def test_a_run_is_not_resumed_with_weights_of_another_kind(log_dir):
    train(small_catch(), "--algo", "C51", "--atoms", "5", "--max-epoch", "1", "--eval-every", "9")
    said = "algo was C51, and is QR. Resume .*--load"
    with tf.Graph().as_default(), pytest.raises(ValueError, match=said):
        train(small_catch(), "--algo", "QR", "--atoms", "5", resume="auto")


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_a_run_is_resumed_with_other_targets_but_not_exactly(log_dir, monkeypatch):
    warnings = []
    monkeypatch.setattr(logger, "warning", warnings.append)
    train(small_catch(), "--max-epoch", "1", "--eval-every", "9")
    said = "The run continues with other rules: algo was Double, and is DQN; double was True, and "
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match=said):
        train(small_catch(), "--munchausen", resume="must")
    with tf.Graph().as_default(), pytest.raises(VariableMismatch, match="RMSProp"):
        train(small_catch(), "--optimizer", "rmsprop", resume="auto")
    assert warnings == []
    with tf.Graph().as_default():
        train(small_catch(), "--munchausen", "--eval-every", "9", resume="auto")
    assert [each.startswith(said) for each in warnings] == [True]
    assert [each["global_step"] for each in read_stats(log_dir)] == [10, 20]


def test_a_file_that_is_no_game_or_not_there_is_refused(capsys, tmp_path):
    said = refusal(capsys, DQN.main, ["--rom", "nosuchgame.bin"])
    assert said.startswith("--rom nosuchgame.bin: ") and "TENSORPACK_DATASET" in said
    path = tmp_path / "letter.bin"
    path.write_text("Dear emulator")
    said = refusal(capsys, DQN.main, ["--rom", str(path)])
    assert said.startswith(f"--rom {path}: ")


def test_a_memory_too_small_for_its_players_is_refused(capsys, log_dir):
    sizes = ["--memory-size", "10", "--init-memory-size", "10", "--num-players", "8"]
    command = ["--rom", breakout_rom(), "--logdir", log_dir, *sizes]
    assert "10" in refusal(capsys, DQN.main, command)
