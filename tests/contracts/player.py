"""What every `Player` must do: a test class per player inherits `PlayerContract`."""

import itertools

import numpy as np
import pytest

from tensorpack.utils.serialize import dumps, loads


class PlayerContract:
    """Tests of the player of `make_player`."""

    can_save = False  # whether it has a `state_dict`

    def make_player(self):
        """Makes a new player, always with the same options; the tests close it."""
        raise NotImplementedError

    def test_tells_what_it_is(self):
        with self.make_player() as player:
            assert player.num_envs >= 1
            assert player.num_actions >= 1
            sizes = player.frame_shape
            assert all(isinstance(size, int) for size in sizes)
            np.dtype(player.frame_dtype)

    def test_frames_and_steps_have_the_promised_types(self):
        with self.make_player() as player:
            _check_frames(player, player.reset())
            types = {"reward": np.float32, "episode_score": np.float64, "taken": np.int64}
            for step in _play(player, 10):
                _check_frames(player, step.frames)
                for name, array in _arrays(step)[1:]:
                    _check_array(name, array, (player.num_envs,), types.get(name, np.bool_))

    def test_the_same_seed_gives_the_same_steps(self):
        with self.make_player() as player, self.make_player() as other:
            first, second = player.reset(seed=7), other.reset(seed=7)
            np.testing.assert_array_equal(first, second)
            steps = _play(player, 30)
            _check_equal(steps, _play(other, 30))
            np.testing.assert_array_equal(player.reset(seed=7), first)
            _check_equal(_play(player, 30), steps)

    def test_what_was_returned_is_never_written_again(self):
        with self.make_player() as player:
            arrays = [player.reset()]
            copies = [arrays[0].copy()]
            for step in _play(player, 20):
                arrays.extend(array for _, array in _arrays(step))
            copies += [array.copy() for array in arrays[1:]]
            _play(player, 20)
            player.reset()
        for array, copy in zip(arrays, copies):
            np.testing.assert_array_equal(array, copy)

    def test_the_caller_may_write_to_what_was_returned(self):
        with self.make_player() as player, self.make_player() as other:
            player.reset(seed=5).fill(0)
            other.reset(seed=5)
            rng, steps = np.random.RandomState(0), _play(other, 30)
            for expected in steps:
                step = player.step(rng.randint(player.num_actions, size=player.num_envs))
                _check_equal([step], [expected])
                for _, array in _arrays(step):
                    array.fill(1)

    def test_a_new_game_begins_in_the_step_after_an_end(self):
        with self.make_player() as player:
            player.reset(seed=1)
            steps = self._play_past_an_end(player)
            assert not steps[0].reset.any()
            for step, after in zip(steps, steps[1:]):
                np.testing.assert_array_equal(after.reset, step.terminated | step.truncated)
            for step in steps:
                begun = step.reset
                ended = step.terminated | step.truncated
                assert not (begun & ended).any(), "a game ends where it begins"
                assert not (step.life_lost & (begun | ended)).any(), "no game goes on there"
                assert not step.reward[begun].any(), "the begin of a game has a reward"
                both = step.terminated & step.truncated
                assert not both.any()

    def test_scores_are_the_sums_of_rewards_of_whole_games(self):
        with self.make_player() as player:
            player.reset(seed=2)
            scores = np.zeros(player.num_envs)
            for step in self._play_past_an_end(player):
                scores = np.where(step.reset, 0, scores + step.reward)
                ended = step.terminated | step.truncated
                unfinished = step.episode_score[~ended]
                assert np.isnan(unfinished).all(), "a game that has not ended has a score"
                np.testing.assert_allclose(step.episode_score[ended], scores[ended], rtol=1e-5)

    def test_reset_ends_all_games(self):
        with self.make_player() as player:
            player.reset(seed=3)
            _play(player, 5)
            _check_frames(player, player.reset())
            step = player.step(np.zeros(player.num_envs, dtype=np.int64))
            assert not step.reset.any()

    def test_a_game_can_be_ended_from_outside(self):
        with self.make_player() as player:
            player.reset(seed=4)
            _play(player, 2)
            pytest.raises(ValueError, player.truncate, [True] * (player.num_envs + 1))
            mask = np.arange(player.num_envs) == player.num_envs - 1
            player.truncate(mask)
            step, after = _play(player, 2)
            assert step.reset[-1], "the step after truncate() has no `reset`"
            begun = after.reset & ~(step.terminated | step.truncated)
            assert not begun.any(), "truncate() has ended a game twice"

    def test_tells_if_it_can_be_saved(self):
        with self.make_player() as player:
            pytest.raises(RuntimeError, player.state_dict)  # before reset()
            assert player.can_save is self.can_save
            player.reset()
            assert player.can_save is self.can_save
            if not self.can_save:
                pytest.raises(RuntimeError, player.state_dict)
                pytest.raises(RuntimeError, player.load_state_dict, {})

    def test_goes_on_from_a_state(self):
        if not self.can_save:
            return
        with self.make_player() as player:
            player.reset(seed=6)
            self._check_goes_on(player)
            self._play_past_an_end(player, more=0)
            self._check_goes_on(player)
            player.truncate(np.arange(player.num_envs) == 0)
            self._check_goes_on(player)

    def test_what_was_saved_does_not_change_later(self):
        if not self.can_save:
            return
        with self.make_player() as player:
            player.reset(seed=10)
            _play(player, 5)
            state = player.state_dict()
            saved = dumps(state)
            steps = _play(player, 30)
            for _ in range(2):
                assert dumps(state) == saved
                player.load_state_dict(state)
                _check_equal(_play(player, 30), steps)

    def test_a_state_of_another_player_is_refused(self):
        if not self.can_save:
            return
        with self.make_player() as player:
            player.reset()
            state = player.state_dict()
            for change in ({"kind": "Other"}, {"num_envs": player.num_envs + 1}):
                pytest.raises(ValueError, player.load_state_dict, {**state, **change})

    def test_refuses_wrong_actions_and_needs_a_reset_first(self):
        with self.make_player() as player:
            count = player.num_envs
            pytest.raises(RuntimeError, player.step, np.zeros(count, dtype=np.int64))
            player.reset()
            pytest.raises(ValueError, player.step, np.zeros(count + 1, dtype=np.int64))
            pytest.raises(ValueError, player.step, np.full(count, player.num_actions))
            pytest.raises(ValueError, player.step, np.full(count, -1))
            pytest.raises(ValueError, player.step, np.full(count, 0.5))

    def test_is_closed_once(self):
        player = self.make_player()
        player.reset()
        player.close()
        player.close()
        pytest.raises(RuntimeError, player.reset)

    def _check_goes_on(self, player):
        """Checks that a new player continues like this one; leaves this one some steps later."""
        state = dumps(player.state_dict())
        steps = _play(player, 40)
        with self.make_player() as other:
            other.load_state_dict(loads(state, copy=False))  # read-only arrays
            _check_equal(_play(other, 40), steps)

    def _play_past_an_end(self, player, more=3):
        """Steps of random play up to the first end of a game, and some more."""
        steps = []
        for step in itertools.islice(_random_play(player), 1000):
            steps.append(step)
            if (step.terminated | step.truncated).any():
                return steps + _play(player, more)
        raise AssertionError("no game ended in 1000 steps of random play")


def contract_of(make_player, **attributes):
    """Returns a test class of the contract, with these attributes; see `make_player` there."""
    body = {**attributes, "make_player": lambda self: make_player()}
    return type("TestContract", (PlayerContract,), body)


def _random_play(player):
    """Steps of random play, always of the same actions."""
    rng = np.random.RandomState(0)
    while True:
        yield player.step(rng.randint(player.num_actions, size=player.num_envs))


def _play(player, count):
    return list(itertools.islice(_random_play(player), count))


def _arrays(step):
    """Returns the fields of a step by name; without `taken` if it is None."""
    return [(name, array) for name, array in zip(step._fields, step) if array is not None]


def _check_frames(player, frames):
    shape = (player.num_envs,) + tuple(player.frame_shape)
    _check_array("frames", frames, shape, player.frame_dtype)


def _check_array(name, array, shape, dtype):
    assert isinstance(array, np.ndarray), name
    assert array.shape == shape, name
    assert array.dtype == dtype, name


def _check_equal(steps, others):
    for step, other in zip(steps, others):
        for array, same in zip(step, other):
            np.testing.assert_array_equal(array, same)
