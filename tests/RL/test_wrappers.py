"""Wrappers: each keeps the contract, and does its one thing."""

import numpy as np
import pytest

from tensorpack.RL.wrappers import LimitIdle, LimitLength, MapPlayerState, PreventStuck, ProxyPlayer
from tests.contracts.player import contract_of
from tests.RL.players import CountingPlayer, Unsaved


class Still(CountingPlayer):
    """Its picture does not change after two actions in a game."""

    def _frames(self):
        return np.stack([np.minimum(self._done, 2), self._games, 0 * self._done], 1).astype(
            np.uint8
        )


TestProxyPlayer = contract_of(lambda: ProxyPlayer(CountingPlayer((3, 4))), can_save=True)
TestLimitLength = contract_of(lambda: LimitLength(CountingPlayer((3, 9)), 5), can_save=True)
TestLimitIdle = contract_of(lambda: LimitIdle(Still((3, 9), num_actions=1), 3), can_save=True)
TestPreventStuck = contract_of(
    lambda: PreventStuck(CountingPlayer(num_actions=2), 2), can_save=True
)
TestMapPlayerState = contract_of(
    lambda: MapPlayerState(CountingPlayer(), lambda frames: frames[:, :2] / np.float32(255)),
    can_save=True,
)


@pytest.mark.parametrize(
    "actions, length", [([0] * 9, 5), ([1, 1, 0, 0, 0], 5), ([0, 0, 0, 0, 2, 0, 0, 0, 0], 8)]
)
def test_a_game_that_stands_still_is_ended_with_its_score(actions, length):
    player = LimitIdle(Still((50,)), 3)
    player.reset()
    for _ in range(2):
        steps = [player.step([action]) for action in actions[:length]]
        assert [step.truncated[0] for step in steps] == [False] * (length - 1) + [True]
        assert steps[-1].episode_score[0] == sum(actions)
        assert player.step([0]).reset[0]


def test_games_that_move_are_as_without_the_limit():
    plain, limited = CountingPlayer((3, 9)), LimitIdle(CountingPlayer((3, 9)), 2)
    plain.reset(1), limited.reset(1)
    for _ in range(30):
        for one, other in zip(plain.step([1, 2]), limited.step([1, 2])):
            np.testing.assert_array_equal(one, other)


def test_a_proxy_closes_what_it_wraps():
    player = CountingPlayer()
    proxy = ProxyPlayer(player)
    proxy.close()
    proxy.close()
    assert player.closed == 1


def test_a_proxy_can_be_saved_if_what_it_wraps_can():
    proxy = LimitLength(MapPlayerState(Unsaved(), lambda frames: frames), 9)
    proxy.reset()
    assert not proxy.can_save and PreventStuck(CountingPlayer()).can_save
    with pytest.raises(RuntimeError, match="LimitLength cannot save.*it has no _state_dict"):
        proxy.state_dict()


def test_a_state_of_another_wrapper_inside_is_refused():
    one, other = ProxyPlayer(LimitLength(CountingPlayer(), 4)), ProxyPlayer(CountingPlayer())
    one.reset()
    with pytest.raises(ValueError, match="'LimitLength'.*this player has.*'CountingPlayer'"):
        other.load_state_dict(one.state_dict())


def test_long_games_are_truncated_and_short_ones_end_as_ever():
    #   game 0: ends by itself after 3 actions; game 1 would take 9, and is cut after 5
    player = LimitLength(CountingPlayer((3, 9)), 5)
    player.reset()
    steps = [player.step([1, 2]) for _ in range(12)]
    truncated = np.array([step.truncated for step in steps]).astype(int).T.tolist()
    terminated = np.array([step.terminated for step in steps]).astype(int).T.tolist()
    assert truncated == [[0] * 12, [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0]]
    assert terminated == [[0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0], [0] * 12]
    assert steps[4].episode_score[1] == 10 and steps[10].episode_score[1] == 10
    assert steps[5].reset.tolist() == [False, True]
    assert steps[5].frames[1, 0] == 0


@pytest.mark.parametrize("length, limit", [(5, 5), (9, 2)])
def test_a_game_at_its_limit_is_truncated_unless_it_ends_there(length, limit):
    player = LimitLength(CountingPlayer((length,)), limit)  # a life goes with the second action
    player.reset()
    step = [player.step([1]) for _ in range(limit)][-1]
    assert step.terminated[0] == (length == limit) == (not step.truncated[0])
    assert not step.life_lost[0]


def test_the_third_equal_request_and_those_after_it_are_replaced():
    inner = CountingPlayer((50, 50))
    player = PreventStuck(inner, num_repeat=3, action=1)
    player.reset()
    for pair in ([0, 0], [0, 2], [0, 0], [0, 0], [3, 0], [0, 0]):
        assert player.step(pair).taken.tolist() == inner.taken[-1]
    assert [taken[0] for taken in inner.taken] == [0, 0, 1, 1, 3, 0]
    assert [taken[1] for taken in inner.taken] == [0, 2, 0, 0, 1, 1]


def test_requests_are_counted_within_a_game():
    inner = CountingPlayer((2,))
    player = PreventStuck(inner, num_repeat=3, action=1)
    player.reset()
    for _ in range(6):  # two actions, a reset, two actions, a reset
        player.step([0])
    assert inner.taken == [[0], [0], [1], [0], [0], [1]]  # the resets ignore theirs


def test_arguments_out_of_range_are_refused():
    with pytest.raises(ValueError, match="LimitIdle: limit must be .* at least 1, but got 0"):
        LimitIdle(CountingPlayer(), 0)
    with pytest.raises(ValueError, match="action must be below 4: 4"):
        PreventStuck(CountingPlayer(), action=4)


def test_mapped_frames_tell_their_shape_and_keep_the_environments():
    player = MapPlayerState(CountingPlayer(), lambda frames: frames[:, None, :1] / np.float32(2))
    assert player.frame_shape == (1, 1)
    assert player.frame_dtype == np.float32
    player.reset()
    assert [player.step([0, 0]).frames[0, 0, 0] for _ in range(2)] == [0.5, 1.0]
    with pytest.raises(ValueError, match="keep the first axis"):
        MapPlayerState(CountingPlayer(), lambda frames: frames[:1])
