"""What defines a run: the games and schedules of its flags, and the rules that are compared."""

import DQN
import flags
import pytest
from checks import check_rules

from tests.RL.players import breakout_rom, needs_vector

# What a run of an earlier version has saved.
OLD = {"algo": "Double", "discount": 0.99, "batch_size": 64, "update_frequency": 4}


def parse(line=""):
    return flags.parse(["--rom", "breakout.bin", *line.split()])


def rules(line=""):
    return DQN.rules_of(parse(line))


@pytest.mark.parametrize("backend", ["single", "vector"])
def test_the_games_have_the_options_of_the_flags(backend):
    if backend == "vector":
        needs_vector()
    line = "--sticky 0.25 --fire-on-reset --noop-max 0 --max-frames 43"
    with flags.get_player(parse(line), breakout_rom(), 2, 1, backend) as player:
        assert player.identity == {"game": "breakout", "frame_skip": 4, "sticky": 0.25}
        player.reset()
        steps = [player.step([0, 0]) for _ in range(10)]
    assert steps[0].taken.tolist() == [1, 1]
    assert [step.truncated.all() for step in steps] == [False] * 9 + [True]


def test_without_flags_the_games_are_those_of_2017():
    with flags.get_player(parse(), breakout_rom(), 1) as player:
        assert player.identity == {"game": "breakout", "frame_skip": 4}
        assert not player.fire_on_reset


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


def test_a_run_of_an_earlier_version_has_the_same_rules():
    assert check_rules(OLD, rules()) == ""


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--eval-epsilon 0.05", "eval_epsilon was 0.001, and is 0.05"),
        ("--no-life-loss-ends", "life_loss_ends was True, and is False"),
        ("--n-step 3", "n_step was 1, and is 3"),
        ("--learning-rate 0.001", "learning_rate was by epochs, and is 0.001"),
        ("--exploration-steps 9", "exploration_steps was by epochs, and is 9"),
        ("--noop-max 1 --max-frames 8", "noop_max was 30, and is 1; max_frames was 120000, and"),
        ("--no-double", "algo was Double, and is DQN; double was True, and is False"),
        ("--munchausen", "algo was Double, and is DQN; double was True, and is False; munchausen"),
    ],
)
def test_what_decides_how_scores_compare_is_a_rule(flag, message):
    assert check_rules(rules(), rules(flag)).startswith(message)


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--algo QR", "algo was Double, and is QR"),
        ("--dueling", "algo was Double, and is Dueling; dueling was False, and is True"),
        ("--network nature", "network was 2017, and is nature"),
        ("--munchausen --noisy", "noisy was False, and is True. Resume"),
    ],
)
def test_weights_of_another_network_are_not_resumed(flag, message):
    with pytest.raises(ValueError, match=f"another algorithm: {message}.*--load"):
        check_rules(rules(), rules(flag))


def test_what_is_asked_for_in_other_words_is_the_same():
    assert rules("--algo DQN --double") == rules("--algo Double") == rules("--preset 2017")


@pytest.mark.parametrize("algo", ["DQN", "C51", "QR", "IQN"])
def test_what_nothing_reads_is_not_a_rule(algo):
    """A run that was saved when it still was one can be resumed."""
    found = rules(f"--algo {algo}")
    assert ("loss" in found, "atoms" in found) == (
        (True, False) if algo == "DQN" else (False, True)
    )
    assert check_rules({"loss": "mse", "atoms": 51, **found}, found) == ""


def test_older_states_know_the_network_by_the_algorithm_alone():
    assert check_rules({"algo": "Double"}, rules("--algo DQN")) == "algo was Double, and is DQN"
    with pytest.raises(ValueError, match="algo was Dueling, and is Double"):
        check_rules({"algo": "Dueling"}, rules())
