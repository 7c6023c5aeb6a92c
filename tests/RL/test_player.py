"""The contract of players, on the smallest one."""

import numpy as np
import pytest

from tensorpack.RL.player import Player
from tests.contracts.player import PlayerContract
from tests.RL.players import CountingPlayer


class TestCountingPlayer(PlayerContract):
    can_save = True

    def make_player(self):
        return CountingPlayer()


def play(player, rounds):
    return [player.step(np.full(player.num_envs, 2)) for _ in range(rounds)]


def test_two_games_of_different_length_do_not_wait_for_each_other():
    #            step: 1  2  3* 4r 5  6  7* 8r     (game 0: three actions, then a reset)
    #                  1  2  3  4  5* 6r 7  8      (game 1: five)
    with CountingPlayer((3, 5)) as player:
        player.reset(seed=0)
        steps = play(player, 8)
    ended = np.array([step.terminated for step in steps]).astype(int).T.tolist()
    reset = np.array([step.reset for step in steps]).astype(int).T.tolist()
    assert ended == [[0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0, 0, 0]]
    assert reset == [[0, 0, 0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0, 0]]
    assert [step.frames[0, 0] for step in steps] == [1, 2, 3, 0, 1, 2, 3, 0]
    assert steps[2].episode_score[0] == 6 and np.isnan(steps[2].episode_score[1])
    assert steps[4].episode_score[1] == 10
    assert steps[6].episode_score[0] == 6  # of its own game alone
    assert [step.reward[0] for step in steps] == [2, 2, 2, 0, 2, 2, 2, 0]


def test_a_life_lost_at_the_end_of_a_game_is_not_reported():
    with CountingPlayer((4,)) as player:  # a life goes with every second action
        player.reset()
        lost = [bool(step.life_lost[0]) for step in play(player, 7)]
    assert lost == [False, True, False, False, False, False, True]


def test_a_game_ended_from_outside_starts_over():
    with CountingPlayer((9, 9)) as player:
        player.reset()
        play(player, 2)
        with pytest.raises(ValueError, match=r"\(3,\)"):
            player.truncate([True, False, True])
        player.truncate([True, False])
        step = play(player, 1)[0]
    assert step.reset.tolist() == [True, False]
    assert step.frames[:, 0].tolist() == [0, 3]
    assert step.frames[:, 1].tolist() == [2, 1]


def test_the_base_class_can_do_nothing_by_itself():
    player = Player()
    player.num_envs, player.num_actions = 1, 1
    player._started = True
    assert not player.can_save
    with pytest.raises(RuntimeError, match="Player cannot end a game from outside"):
        player.truncate([True])
    with pytest.raises(RuntimeError, match="Player cannot save its state or restore one"):
        player.load_state_dict({})
