"""Catch keeps the contract of players."""

from tests.contracts.player import PlayerContract
from tests.RL.catch import CatchPlayer


class TestCatchPlayer(PlayerContract):
    can_save = True

    def make_player(self):
        return CatchPlayer(num_envs=3, seed=0)
