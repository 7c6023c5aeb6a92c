"""The contract of players, on the smallest one; and that the contract tests notice offenders."""

import numpy as np
import pytest

from tensorpack.RL.player import Player
from tests.contracts.player import PlayerContract
from tests.RL.players import CountingPlayer, Unsaved


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


class Forgetful(CountingPlayer):
    """Reports no reset."""

    def _step(self, actions):
        step = super()._step(actions)
        return step._replace(reset=np.zeros_like(step.reset))


class Reusing(CountingPlayer):
    """Returns the same frames every time."""

    def _frames(self):
        self._same = getattr(self, "_same", np.zeros((self.num_envs, 3), dtype=np.uint8))
        self._same[:] = super()._frames()
        return self._same


class Unseeded(CountingPlayer):
    """Goes on with its random numbers whatever the seed."""

    def _reset(self, seed):
        return super()._reset(None)


class ScorePerStep(CountingPlayer):
    """Gives the last reward for the score."""

    def _step(self, actions):
        step = super()._step(actions)
        score = np.where(np.isnan(step.episode_score), np.nan, step.reward)
        return step._replace(episode_score=score)


class HalfSaved(CountingPlayer):
    """Leaves a part out of its state."""

    part = "counts"

    def _state_dict(self):
        state = super()._state_dict()
        state[self.part] = CountingPlayer()._state_dict()[self.part]
        return state


class WithoutTracker(HalfSaved):
    """Forgets who has to begin anew."""

    part = "ledger"


class GivesItsArraysAway(CountingPlayer):
    """Goes on writing to what it returned as its state."""

    def _state_dict(self):
        return {**super()._state_dict(), "counts": (self._games, self._done)}

    def _step(self, actions):
        step, games = super()._step(actions), self._games
        self._games_before[:] = games
        self._games = self._games_before
        return step

    def _reset(self, seed):
        self._games_before = np.zeros(self.num_envs, dtype=np.int64)
        return super()._reset(seed)


class NotForAFile(CountingPlayer):
    """Has an object in its state."""

    def _state_dict(self):
        return {**super()._state_dict(), "rng": self._rng}


@pytest.mark.parametrize(
    "offender, test",
    [
        (HalfSaved, "test_goes_on_from_a_saved_state"),
        (WithoutTracker, "test_goes_on_from_a_state_after_the_end_of_a_game"),
        (WithoutTracker, "test_goes_on_from_a_state_after_a_game_was_ended_from_outside"),
        (GivesItsArraysAway, "test_what_was_saved_does_not_change_later"),
        (NotForAFile, "test_goes_on_from_a_saved_state"),
        (Unsaved, "test_tells_if_it_can_be_saved"),
        (Forgetful, "test_a_new_game_begins_in_the_step_after_an_end"),
        (Reusing, "test_what_was_returned_is_never_written_again"),
        (Unseeded, "test_the_same_seed_gives_the_same_steps"),
        (ScorePerStep, "test_scores_are_the_sums_of_rewards_of_whole_games"),
    ],
)
def test_the_contract_notices(offender, test):
    contract = PlayerContract()
    contract.can_save = True
    contract.make_player = offender
    with pytest.raises(TypeError if offender is NotForAFile else AssertionError):
        getattr(contract, test)()
