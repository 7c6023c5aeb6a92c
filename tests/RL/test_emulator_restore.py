"""Saved Atari games come back by their machine or their actions, or it is said that they do not."""

import numpy as np
import pytest

from tensorpack.RL import _emulator
from tensorpack.RL.atari import AtariPlayers
from tests.contracts.player import PlayerContract
from tests.RL.players import any_rom, breakout_rom, play
from tests.tiers import first_fast


def make(rom, **options):
    return AtariPlayers(rom, 2, backend="single", seed=4, **options)


def sticky(rom):
    return make(rom, sticky=0.5)


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize("name", ["tetris", "qbert"])
def test_a_game_that_is_not_restored_well_is_played_again(name):
    contract = PlayerContract()
    contract.can_save = True
    contract.make_player = lambda: make(any_rom(name), max_episode_actions=40)
    with contract.make_player() as player:
        assert player.can_save
    contract.test_goes_on_from_a_saved_state()
    contract.test_goes_on_from_a_state_after_the_end_of_a_game()


@pytest.mark.parametrize("name, well", [("breakout", True), ("tetris", False), ("qbert", False)])
def test_it_is_known_which_games_are_restored_well(name, well):
    assert _emulator.clones_well(any_rom(name)) is well


@pytest.mark.parametrize(
    "name, alike", [("breakout", True), ("tetris", True), ("elevator_action", False)]
)
def test_it_is_known_which_games_begin_alike(name, alike):
    assert _emulator.begins_alike(any_rom(name)) is alike


def assert_goes_on(state, steps, make=make):
    with make(breakout_rom()) as player:
        player.load_state_dict(state)
        for one, other in zip(emulators(player.state_dict()), emulators(state)):
            assert one["games"] == other["games"]
        for step, same in zip(play(player, len(steps)), steps):
            for one, other in zip(step, same):
                np.testing.assert_array_equal(one, other)


def assert_refused(state, message):
    """And the games of the player that refuses go on undisturbed."""
    with make(breakout_rom()) as player, make(breakout_rom()) as undisturbed:
        assert np.array_equal(player.reset(), undisturbed.reset())
        play(player, 5), play(undisturbed, 5)
        with pytest.raises(ValueError, match=message):
            player.load_state_dict(state)
        for step, same in zip(play(player, 20), play(undisturbed, 20)):
            assert np.array_equal(step.frames, same.frames)


@pytest.fixture
def saved():
    """A state in the second game of one environment, and what comes after it."""
    with make(breakout_rom()) as player:
        player.reset()
        play(player, 5)
        player.truncate([True, False])
        play(player, 40)
        return player.state_dict(), play(player, 250)


def distrust(monkeypatch):
    monkeypatch.setattr(_emulator, "clones_well", lambda rom: False)


def emulators(state):
    return state["inside"]["emulators"].values()


@pytest.mark.slow
def test_both_ways_repeat_the_same_frames_of_sticky_actions(monkeypatch):
    with sticky(breakout_rom()) as player:
        player.reset()
        play(player, 20)
        player.truncate([True, False])
        play(player, 21)
        state, steps = player.state_dict(), play(player, 40)
    assert_goes_on(state, steps, sticky)
    distrust(monkeypatch)
    assert_goes_on(state, steps, sticky)


@pytest.mark.one_row
@pytest.mark.slow
def test_both_ways_lead_to_the_same(saved, monkeypatch):
    state, steps = saved
    assert [one["log"].size for one in emulators(state)] == [39, 45]
    monkeypatch.setattr(_emulator.Emulator, "replay", lambda self, state: False)
    assert_goes_on(state, steps)
    monkeypatch.undo()
    distrust(monkeypatch)
    assert_goes_on(state, steps)


@pytest.mark.one_row
@pytest.mark.slow
def test_what_another_version_saved_is_played_again(saved, monkeypatch):
    state, steps = saved
    for one in emulators(state):
        one["ale_py"], one["machine"] = "0.1", b"unreadable"
    assert_goes_on(state, steps)


@pytest.mark.one_row
@pytest.mark.slow
def test_only_the_first_game_is_played_again_where_later_ones_begin_otherwise(monkeypatch):
    monkeypatch.setattr(_emulator, "begins_alike", lambda rom: False)
    distrust(monkeypatch)
    with make(breakout_rom()) as player:
        player.reset()
        play(player, 20)
        first = player.state_dict()
        assert_goes_on(first, play(player, 60))
        for _ in range(2):  # the second time a player that was restored
            player.truncate([True, False])
            play(player, 20)
            assert_refused(player.state_dict(), "begins depends on the one before")
            player.load_state_dict(first)


@pytest.mark.one_row
@pytest.mark.slow
def test_a_machine_that_is_not_the_one_that_was_saved_is_not_taken(saved, monkeypatch):
    state, steps = saved
    clones = iter([b"another"] * 2)
    clone = _emulator.clone_machine
    monkeypatch.setattr(_emulator, "clone_machine", lambda ale: next(clones, None) or clone(ale))
    assert_goes_on(state, steps)


@pytest.mark.parametrize("part", first_fast(["ram", "screens", "lives", "log", "begun_with"]))
def test_a_game_that_goes_otherwise_when_played_again_is_refused(saved, part):
    state, _ = saved
    one = list(emulators(state))[1]
    one["ale_py"] = "0.1"
    one[part] = one[part][:-1] if part == "log" else one[part] + 1
    assert_refused(state, "saved by ale-py 0.1 cannot be restored.* 4[45] actions, repeated")


@pytest.mark.one_row
@pytest.mark.slow
def test_a_game_too_long_to_remember_is_only_restored(saved, monkeypatch):
    monkeypatch.setattr(_emulator, "_LOG_LENGTH", 40)
    with make(breakout_rom()) as player:
        player.reset()
        play(player, 40)
        assert [one["log"].size for one in emulators(player.state_dict())] == [40, 40]
        play(player, 1)
        state = player.state_dict()
        steps = play(player, 60)
    assert [one["log"] for one in emulators(state)] == [None, None]
    assert_goes_on(state, steps)
    with make(breakout_rom()) as player:
        player.load_state_dict(state)
        assert [one["log"] for one in emulators(player.state_dict())] == [None, None]
    distrust(monkeypatch)
    assert_refused(state, "too long for its actions")


@pytest.mark.slow
def test_a_state_of_a_restored_player_can_be_played_again(saved, monkeypatch):
    state, _ = saved
    with make(breakout_rom()) as player:
        player.load_state_dict(state)
        play(player, 30)
        later, steps = player.state_dict(), play(player, 60)
    distrust(monkeypatch)
    assert_goes_on(later, steps)
