"""Environments of 2017 and their wrappers, and the two names that serve both kinds of players."""

import numpy as np
import pytest

from tensorpack.RL import envbase
from tensorpack.RL.common import LimitLengthPlayer, PreventStuckPlayer
from tensorpack.RL.envbase import DiscreteActionSpace, RLEnvironment
from tensorpack.RL.history import HistoryFramePlayer
from tensorpack.RL.wrappers import MapPlayerState, ProxyPlayer


class Steps(RLEnvironment):
    """A game of five actions, each worth itself; its frame holds the number of actions so far."""

    def __init__(self):
        super().__init__()
        self.taken, self.closed = [], 0
        self.restart_episode()

    def current_state(self):
        return np.full((2, 1, 1), self.count, np.uint8)

    def action(self, act):
        self.taken.append(act)
        self.count, self.score = self.count + 1, self.score + act
        over = self.count == 5
        if over:
            self.finish_episode()
            self.restart_episode()
        return act, over

    def restart_episode(self):
        self.count = self.score = 0

    def finish_episode(self):
        self.stats["score"].append(self.score)
        self.stats["length"].append(self.count)

    def get_action_space(self):
        return DiscreteActionSpace(3)

    def close(self):
        self.closed += 1


def play(player, actions):
    return [over for _, over in map(player.action, actions)]


def test_an_episode_gives_its_statistics_and_forgets_them():
    env = Steps()
    assert env.play_one_episode(lambda state: int(state[0, 0, 0])) == [0 + 1 + 2 + 3 + 4]
    assert env.play_one_episode(lambda state: 1, ["score", "length"]) == [[5], [5]]
    assert env.stats == {}
    env.stats = {"score": [7]}
    assert env.stats["score"] == [7]


def test_a_discrete_space_samples_all_its_actions():
    space = DiscreteActionSpace(3)
    assert space.num_actions() == 3
    assert {space.sample() for _ in range(100)} == {0, 1, 2}
    with pytest.raises(ValueError, match="num must be .* at least 1"):
        DiscreteActionSpace(0)


@pytest.mark.parametrize("proxy_class", [ProxyPlayer, envbase.ProxyPlayer])
def test_a_proxy_of_an_environment_shares_its_statistics(proxy_class):
    env = Steps()
    proxy = proxy_class(proxy_class(env))
    assert isinstance(proxy, RLEnvironment)
    assert play(proxy, [2] * 5) == [False] * 4 + [True]
    assert proxy.stats is env.stats and proxy.stats["score"] == [10]
    proxy.finish_episode()
    proxy.reset_stat()
    assert env.stats == {} and proxy.get_action_space().num_actions() == 3
    proxy.action(1)
    proxy.restart_episode()
    assert proxy.current_state().max() == 0
    proxy.close()
    assert env.closed == 1


def test_the_third_equal_request_and_those_after_it_are_replaced():
    env = Steps()
    player = PreventStuckPlayer(env, 3, 1)
    play(player, [0, 0, 0, 0, 2, 2, 2])  # the fifth action ends the game
    assert env.taken == [0, 0, 1, 1, 2, 2, 2]
    player.restart_episode()
    play(player, [2, 2, 2])
    assert env.taken[7:] == [2, 2, 1]


def test_long_games_end_at_the_limit():
    env = Steps()
    player = LimitLengthPlayer(env, 3)
    assert play(player, [1, 1, 1, 2]) == [False, False, True, False]
    player.restart_episode()
    assert play(player, [2, 2, 2]) == [False, False, True]
    assert env.stats["score"] == [3, 6]
    env = Steps()  # its games end at the limit, and are counted once
    assert play(LimitLengthPlayer(env, 5), [1] * 10) == ([False] * 4 + [True]) * 2
    assert env.stats["score"] == [5, 5]


def test_a_history_has_zeros_before_the_game():
    player = HistoryFramePlayer(MapPlayerState(Steps(), lambda frame: frame + 1), 3)
    assert player.current_state().shape == (2, 1, 3)
    rows = [player.current_state()[0, 0].tolist()]
    for _ in range(6):
        player.action(0)
        rows.append(player.current_state()[0, 0].tolist())
    #             begins     1          2          3          4          over       1
    assert rows == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [0, 0, 1], [0, 1, 2]]
    player.restart_episode()
    assert player.current_state()[0, 0].tolist() == [0, 0, 1]


def test_a_history_of_colour_frames_puts_them_side_by_side():
    frames = np.random.RandomState(0).rand(3, 2, 4, 3, 5)
    rest = iter(frames)
    player = HistoryFramePlayer(MapPlayerState(Steps(), lambda _: next(rest)), 2)
    play(player, [0, 0])
    np.testing.assert_array_equal(player.current_state(), np.concatenate(frames[1:], axis=2))
