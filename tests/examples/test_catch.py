"""Catch keeps the contract of players, and can be won."""

import numpy as np

from tensorpack.RL.testing import PlayerContract
from tests.examples.catch import CatchPlayer


class TestCatchPlayer(PlayerContract):
    can_save = True

    def make_player(self):
        return CatchPlayer(num_envs=3, seed=0)


def test_a_frame_has_a_ball_and_a_paddle():
    frames = CatchPlayer(num_envs=5).reset()
    assert (frames.shape, frames.dtype) == ((5, 84, 84), np.uint8)
    for value in [255, 128]:
        assert np.all(np.count_nonzero(frames == value, axis=(1, 2)) == 12 * 12)


def test_always_staying_wins_one_game_in_seven():
    player = CatchPlayer(num_envs=200, cell=1)
    player.reset()
    for _ in range(6):
        step = player.step(np.ones(200, int))
    assert step.terminated.all()
    assert 0.05 < np.mean(step.reward == 1) < 0.25
