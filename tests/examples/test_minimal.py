"""The DQN on one page: it learns, and the tutorial shows it as it is."""

from types import SimpleNamespace

import minimal
import numpy as np
import pytest

from tensorpack.RL import GymPlayers
from tensorpack.utils.stopping import Interrupted, StopRequested
from tests.checks import ROOT
from tests.examples.small_dqn import read_stats
from tests.pages import write_files
from tests.RL.catch import CatchPlayer
from tests.RL.players import FakeTrainer

PATH = ROOT / "examples" / "DeepQNetwork" / "minimal.py"


class Walk:
    """An environment without an end: each step leads one to the right."""

    action_space = SimpleNamespace(n=2)
    observation_space = SimpleNamespace(shape=(3,), dtype=np.dtype("float32"))

    def reset(self, seed=None):
        self.place = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.place += 1
        return np.full(3, self.place, np.float32), 2.0, False, False, {}

    def close(self):
        pass


def test_it_catches_balls(log_dir):
    minimal.train(CatchPlayer(8, cell=1), minimal.Small, 4)
    epochs = read_stats(log_dir)
    first, last = epochs[0]["score"], epochs[-1]["score"]
    assert first < -0.3 and last > 0.6  # with one action of twenty by chance


def play(player):
    """What plays on a player, with a network that takes all actions for alike."""
    experience = minimal.Experience(player, minimal.Small)
    experience.predict = lambda states: [np.zeros((len(states), player.num_actions))]
    return experience


def test_a_game_that_is_cut_off_between_two_steps_is_not_spliced_with_the_next_one():
    player = GymPlayers(Walk, 1)
    experience = play(player)
    experience.frames, experience.starts = player.reset(), np.ones(1, bool)
    for number in range(60):
        if number % 4 == 3:
            player.truncate(np.array([True]))
        experience.play(1.0)
    places = experience.memory.sample(200, np.random.RandomState(0)).frames[..., 0]
    assert {tuple(row) for row in places} == {(0, 0, 1), (0, 1, 2)}


def test_a_signal_ends_the_play_before_the_first_step():
    experience = play(CatchPlayer(8, cell=1))
    experience.trainer = FakeTrainer(None)
    experience.trainer.stop_token.request(Interrupted(2))
    with pytest.raises(StopRequested):
        experience.before_train()
    assert len(experience.memory) == 0


def test_it_fits_on_a_page_and_the_tutorial_shows_all_of_it(tmp_path):
    text = PATH.read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    write_files(ROOT / "docs" / "tutorials" / "07-dqn.md", tmp_path)
    assert (tmp_path / "minimal.py").read_text(encoding="utf-8") == text
