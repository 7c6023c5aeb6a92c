"""The program: whole runs on a small game, its schedules and rules, and what it refuses."""

import os

import DQN
import flags
import numpy as np
import pytest
from checks import check_rules

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.examples.small_dqn import read_stats, small_catch, train
from tests.examples.test_dqn_model import VARIABLES
from tests.RL.catch import CountingCatch
from tests.RL.players import breakout_rom

SCALARS = {
    *(f"SummaryGradient/{name}/rms" for name in VARIABLES),
    *(f"param-summary/{layer}/W-rms" for layer in ["conv0", "conv1", "conv2", "fc0", "fct"]),
    *["cost", "predict_reward", "input_queue_size", "learning_rate"],
    *["expreplay/mean_score", "expreplay/max_score", "mean_score", "max_score"],
    *["agent_steps", "emulator_frames", "episodes", "exploration", "hours"],
    *["Throughput (steps/sec)", "epoch_num", "global_step"],
}


def test_a_run_writes_its_scalars_and_a_model_each_epoch(log_dir, lines):
    """Also one that is resumed, with its memory and its games."""
    train(small_catch(kind=CountingCatch), "--max-epoch", "1")
    assert "Populating replay memory with epsilon=1.0 ..." in lines
    del lines[:]
    player, steps = small_catch(kind=CountingCatch), []
    player.during_step = lambda: steps.append(player.played)
    with tf.Graph().as_default():
        train(player, resume="must")
    assert not [line for line in lines if line.startswith("Populating")]
    assert player.resets == 0 and len(steps) >= 20
    stats = read_stats(log_dir)
    assert [(epoch["epoch_num"], epoch["global_step"]) for epoch in stats] == [(1, 10), (2, 20)]
    assert [set(epoch) for epoch in stats] == [SCALARS, SCALARS]
    assert stats[0]["learning_rate"] == pytest.approx(1e-3)
    assert 60 + 4 * 10 <= stats[0]["agent_steps"] < stats[1]["agent_steps"]
    assert [epoch["exploration"] for epoch in stats] == [1.0, 0.91]
    check_games(log_dir, stats)
    assert os.path.basename(tf.train.latest_checkpoint(log_dir)) == "model-20"
    # The target network is updated after step 4, 8, 12, 16 and 20; model-20 is saved after that.
    for step, same in [(10, False), (20, True)]:
        saved = load_checkpoint_vars(os.path.join(log_dir, f"model-{step}"))
        assert saved["global_step"] == step
        assert np.array_equal(saved["fct/W"], saved["target/fct/W"]) == same


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


def parse(line=""):
    return flags.parse(["--rom", "breakout.bin", *line.split()])


def rules(line=""):
    return DQN.rules_of(parse(line))


def test_the_games_have_the_options_of_the_flags():
    line = "--sticky 0.25 --fire-on-reset --noop-max 0 --max-frames 43"
    with DQN.get_player(parse(line), breakout_rom(), 2, 1, "single") as player:
        assert player.identity == {"game": "breakout", "frame_skip": 4, "sticky": 0.25}
        player.reset()
        steps = [player.step([0, 0]) for _ in range(10)]
    assert steps[0].taken.tolist() == [1, 1]
    assert [step.truncated.all() for step in steps] == [False] * 9 + [True]


def test_without_flags_the_games_are_those_of_2017():
    with DQN.get_player(parse(), breakout_rom(), 1) as player:
        assert player.identity == {"game": "breakout", "frame_skip": 4}
        assert not player.fire_on_reset


@pytest.mark.parametrize("frames, actions", [(0, None), (1, 1), (3600, 900)])
def test_a_limit_of_idle_frames_is_at_least_an_action(frames, actions, monkeypatch):
    monkeypatch.setattr("tensorpack.contrib.game_flags.AtariPlayers", lambda *_, **options: None)
    monkeypatch.setattr("tensorpack.contrib.game_flags.LimitIdle", lambda player, limit: limit)
    args = parse(f"--idle-frames {frames}")
    assert DQN.get_player(args, "breakout.bin", 1, evaluated=True) == actions
    assert DQN.get_player(args, "breakout.bin", 1) is None


def test_schedules_are_in_epochs_without_flags():
    assert DQN.learning_rate(parse()) == {"schedule": [(60, 4e-4), (100, 2e-4)]}
    epochs = [(0, 1.0), (10, 0.1), (320, 0.01)]
    assert DQN.exploration(parse()) == {"schedule": epochs, "interp": "linear"}


def test_schedules_in_agent_steps_become_updates():
    args = parse("--exploration-steps 1000 --update-freq 2 --learning-rate 0.5")
    assert DQN.learning_rate(args) == {"schedule": [(0, 0.5)]}
    updates = {"schedule": [(0, 1.0), (500, 0.01)], "interp": "linear", "step_based": True}
    assert DQN.exploration(args) == updates
    assert DQN.exploration(parse("--preset dqn2015"))["schedule"][1] == (250000, 0.1)
    assert DQN.exploration(parse("--preset rainbow"))["schedule"][1] == (62500, 0.01)


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--learning-rate 0.001", "learning_rate was by epochs, and is 0.001"),
        ("--noop-max 1 --max-frames 8", "noop_max was 30, and is 1; max_frames was 120000, and"),
        ("--munchausen", "algo was Double, and is DQN; double was True, and is False; munchausen"),
    ],
)
def test_what_decides_how_scores_compare_is_a_rule(flag, message):
    assert check_rules(rules(), rules(flag)).startswith(message)


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--algo QR", "algo was Double, and is QR"),
        ("--munchausen --noisy", "noisy was False, and is True. Resume"),
    ],
)
def test_weights_of_another_network_are_not_resumed(flag, message):
    with pytest.raises(ValueError, match=f"another algorithm: {message}.*--load"):
        check_rules(rules(), rules(flag))


def test_what_is_asked_for_in_other_words_is_the_same():
    assert rules("--algo DQN --double") == rules("--algo Double") == rules("--preset 2017")


@pytest.mark.parametrize("algo", ["DQN", "QR"])
def test_what_nothing_reads_is_not_a_rule(algo):
    settings = rules(f"--algo {algo}")
    assert ("loss" in settings, "atoms" in settings) == (
        (True, False) if algo == "DQN" else (False, True)
    )
    assert check_rules({"loss": "mse", "atoms": 51, **settings}, settings) == ""
