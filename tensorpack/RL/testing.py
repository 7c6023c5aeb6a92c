"""Tests that every `Player` passes, to be inherited by the tests of your own.

Like this, in a test file that pytest collects::

    class TestMyPlayer(PlayerContract):
        def make_player(self):
            return MyPlayer(num_envs=2)
"""

from typing import Any, Callable, List, Type

import numpy as np

from .player import Player, PlayerStep

__all__ = ["PlayerContract"]


class PlayerContract:
    """What `Player` promises, as tests; override `make_player`.

    Attributes:
      max_steps: a game has to end within so many steps of random play.
      can_truncate: False for a player whose games cannot be ended from outside.
      can_save: False for a player without `state_dict`, True for one that has it.
    """

    max_steps: int = 1000
    can_truncate: bool = True
    can_save: bool = False

    def make_player(self) -> Player:
        """Makes a new player, always with the same options; the tests close it."""
        raise NotImplementedError("override make_player()")

    def test_tells_what_it_is(self):
        with self.make_player() as player:
            assert player.num_envs >= 1
            assert player.num_actions >= 1
            assert all(isinstance(size, int) for size in player.frame_shape)
            np.dtype(player.frame_dtype)

    def test_frames_and_steps_have_the_promised_types(self):
        with self.make_player() as player:
            _check_frames(player, player.reset())
            for step in _play(player, 10):
                _check_step(player, step)

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
                arrays.extend(step)
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
                for array in step:
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
                assert not (begun & (step.terminated | step.truncated | step.life_lost)).any()
                assert not step.reward[begun].any()
                assert not (step.terminated & step.truncated).any()

    def test_scores_are_the_sums_of_rewards_of_whole_games(self):
        with self.make_player() as player:
            player.reset(seed=2)
            scores = np.zeros(player.num_envs)
            for step in self._play_past_an_end(player):
                scores = np.where(step.reset, 0, scores + step.reward)
                ended = step.terminated | step.truncated
                assert np.isnan(step.episode_score[~ended]).all()
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
            mask = np.arange(player.num_envs) == player.num_envs - 1
            if not self.can_truncate:
                _check_raises(RuntimeError, lambda: player.truncate(mask))
                return
            player.truncate(mask)
            step, after = _play(player, 2)
            assert step.reset[-1]
            assert not (after.reset & ~(step.terminated | step.truncated)).any()

    def test_tells_if_it_can_be_saved(self):
        with self.make_player() as player:
            _check_raises(RuntimeError, player.state_dict)  # before reset()
            assert player.can_save is self.can_save
            player.reset()
            assert player.can_save is self.can_save
            if not self.can_save:
                _check_raises(RuntimeError, player.state_dict)
                _check_raises(RuntimeError, lambda: player.load_state_dict({}))

    def test_goes_on_from_a_saved_state(self):
        with self.make_player() as player:
            player.reset(seed=6)
            self._check_goes_on(player)
            _play(player, 15)
            self._check_goes_on(player)

    def test_goes_on_from_a_state_after_the_end_of_a_game(self):
        with self.make_player() as player:
            player.reset(seed=8)
            rng, ended = np.random.RandomState(0), False
            for _ in range(self.max_steps):
                step = player.step(rng.randint(player.num_actions, size=player.num_envs))
                if (step.terminated | step.truncated).any():
                    ended = True
                    break
            assert ended, f"no game ended in {self.max_steps} steps"
            self._check_goes_on(player)

    def test_goes_on_from_a_state_after_a_game_was_ended_from_outside(self):
        if not self.can_truncate:
            return
        with self.make_player() as player:
            player.reset(seed=9)
            _play(player, 3)
            player.truncate(np.arange(player.num_envs) == 0)
            self._check_goes_on(player)

    def test_what_was_saved_does_not_change_later(self):
        with self.make_player() as player:
            player.reset(seed=10)
            if not self.can_save:
                return
            _play(player, 5)
            state = player.state_dict()
            kept = _as_loaded(state)
            steps = _play(player, 30)
            _check_same_tree(state, kept)
            player.load_state_dict(state)
            _check_equal(_play(player, 30), steps)
            _check_same_tree(state, kept)

    def test_a_state_of_another_player_is_refused(self):
        with self.make_player() as player:
            player.reset()
            if not self.can_save:
                return
            state = player.state_dict()
            for change in ({"kind": "Other"}, {"num_envs": player.num_envs + 1}):
                wrong = {**state, **change}
                _check_raises(ValueError, lambda wrong=wrong: player.load_state_dict(wrong))

    def test_refuses_wrong_actions(self):
        with self.make_player() as player:
            player.reset()
            count = player.num_envs
            _check_raises(ValueError, lambda: player.step(np.zeros(count + 1, dtype=np.int64)))
            _check_raises(ValueError, lambda: player.step(np.full(count, player.num_actions)))
            _check_raises(ValueError, lambda: player.step(np.full(count, -1)))
            _check_raises(TypeError, lambda: player.step(np.zeros(count, dtype=np.float32)))

    def test_needs_a_reset_first(self):
        with self.make_player() as player:
            actions = np.zeros(player.num_envs, dtype=np.int64)
            _check_raises(RuntimeError, lambda: player.step(actions))

    def test_is_closed_once(self):
        player = self.make_player()
        player.reset()
        player.close()
        player.close()
        _check_raises(RuntimeError, player.reset)

    def _check_goes_on(self, player: Player) -> None:
        """A fresh player goes on like this one from here; this one moves on."""
        if not self.can_save:
            _check_raises(RuntimeError, player.state_dict)
            return
        state = _as_loaded(player.state_dict())
        steps = _play(player, 40)
        with self.make_player() as other:
            other.load_state_dict(state)
            _check_equal(_play(other, 40), steps)

    def _play_past_an_end(self, player: Player) -> List[PlayerStep]:
        """Steps of random play, until three after the first end of a game."""
        rng, left = np.random.RandomState(0), None
        steps: List[PlayerStep] = []
        while left != 0:
            if left is None and len(steps) >= self.max_steps:
                raise AssertionError(
                    f"no game ended in {self.max_steps} steps: raise `max_steps`, or let "
                    "make_player() make shorter games"
                )
            steps.append(player.step(rng.randint(player.num_actions, size=player.num_envs)))
            if left is not None:
                left -= 1
            elif (steps[-1].terminated | steps[-1].truncated).any():
                left = 3
        return steps


def _play(player: Player, count: int) -> List[PlayerStep]:
    """So many steps of random play, always of the same actions."""
    rng = np.random.RandomState(0)
    return [
        player.step(rng.randint(player.num_actions, size=player.num_envs)) for _ in range(count)
    ]


def _check_frames(player: Player, frames: np.ndarray) -> None:
    assert isinstance(frames, np.ndarray)
    assert frames.shape == (player.num_envs,) + tuple(player.frame_shape)
    assert frames.dtype == player.frame_dtype


def _check_step(player: Player, step: PlayerStep) -> None:
    _check_frames(player, step.frames)
    types = {"reward": np.float32, "episode_score": np.float64}
    for name, array in zip(step._fields[1:], step[1:]):
        assert isinstance(array, np.ndarray), name
        assert array.shape == (player.num_envs,), name
        assert array.dtype == types.get(name, np.bool_), name


def _check_equal(steps: List[PlayerStep], others: List[PlayerStep]) -> None:
    for step, other in zip(steps, others):
        for array, same in zip(step, other):
            np.testing.assert_array_equal(array, same)


def _as_loaded(tree: Any) -> Any:
    """A state as it comes back from a file: all is new, and arrays are read-only."""
    if type(tree) is dict:
        assert all(type(key) is str for key in tree), f"keys must be str: {list(tree)}"
        return {key: _as_loaded(value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(_as_loaded(value) for value in tree)
    if type(tree) is np.ndarray:
        assert tree.dtype != object, "arrays of objects cannot be kept in a file"
        copy = tree.copy()
        copy.flags.writeable = False
        return copy
    plain = (type(None), bool, int, float, str, bytes)
    is_plain = type(tree) in plain or isinstance(tree, np.generic)
    assert is_plain, f"a {type(tree).__name__} cannot be kept in a file"
    return tree


def _check_same_tree(tree: Any, other: Any) -> None:
    assert type(tree) is type(other)
    if isinstance(tree, dict):
        assert list(tree) == list(other)
        tree, other = list(tree.values()), list(other.values())
    if isinstance(tree, (list, tuple)):
        assert len(tree) == len(other)
        for value, its_twin in zip(tree, other):
            _check_same_tree(value, its_twin)
    else:
        np.testing.assert_array_equal(tree, other)


def _check_raises(error: Type[Exception], call: Callable[[], Any]) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} was not raised")
