"""The DQN on one page: it learns, and the tutorial shows it as it is."""

from types import SimpleNamespace

import minimal
import numpy as np

from tensorpack.RL import GymPlayers, ReplayMemory
from tests.checks import ROOT
from tests.examples.small_dqn import read_stats
from tests.pages import write_files
from tests.RL.catch import CatchPlayer

PATH = ROOT / "examples" / "DeepQNetwork" / "minimal.py"


class Quick(minimal.Small):
    """The numbers of a run of some steps."""

    populate, batch, steps_per_epoch = 100, 8, 10


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


def test_a_game_that_is_cut_off_has_no_end(log_dir, monkeypatch):
    batches, sample = [], ReplayMemory.sample

    def noting(*args):
        batches.append(sample(*args))
        return batches[-1]

    monkeypatch.setattr(ReplayMemory, "sample", noting)
    with GymPlayers(Walk, 2, max_episode_actions=5) as player:
        minimal.train(player, Quick, 1)
    assert len(batches) == 10 and not any(each.terminated.any() for each in batches)
    assert max(each.frames.max() for each in batches) == 5  # the last frame of a game
    assert {each.reward.max() for each in batches} == {1}


def test_it_fits_on_a_page_and_the_tutorial_shows_all_of_it(tmp_path):
    text = PATH.read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    write_files(ROOT / "docs" / "tutorials" / "07-dqn.md", tmp_path)
    assert (tmp_path / "minimal.py").read_text(encoding="utf-8") == text
