"""Saved Atari games continue exactly, or it is said that they do not."""

import numpy as np
import pytest

from tensorpack.RL import _emulator
from tensorpack.RL.atari import AtariPlayers
from tensorpack.utils import logger
from tests.RL.players import any_rom, breakout_rom, play


def make(**options):
    return AtariPlayers(breakout_rom(), 2, backend="single", seed=4, **options)


def assert_equal_steps(steps, others):
    for step, other in zip(steps, others):
        for array, same in zip(step, other):
            np.testing.assert_array_equal(array, same)


@pytest.mark.slow
@pytest.mark.parametrize("sticky", [0.0, 0.5])
def test_saved_games_go_on_exactly(sticky):
    with make(sticky=sticky) as player, make(sticky=sticky) as other:
        player.reset()
        play(player, 5)
        player.truncate([True, False])  # one is in its second game
        play(player, 40)
        state = player.state_dict()
        steps = play(player, 250)
        other.load_state_dict(state)
        assert_equal_steps(play(other, 250), steps)
        other.load_state_dict(state)
        player.load_state_dict(other.state_dict())
        for one in (player, other):
            one.truncate([False, True])
        assert_equal_steps(play(other, 60), play(player, 60))


def test_a_state_of_the_first_form_is_read():
    with make() as player, make() as other:
        player.reset()
        play(player, 40)
        state = player.state_dict()
        inside = state["inside"]
        inside["ledger"], ale_py = inside.pop("tracker"), inside.pop("ale_py")
        for emulator in inside["emulators"].values():
            keys, position = emulator["noops"]["keys"], emulator["noops"]["position"]
            sticky = {"held": emulator.pop("held"), "rng": emulator.pop("repeats")}
            emulator.update(ale_py=ale_py, noops={"keys": keys, "position": position})
            emulator["sticky"] = sticky
        other.load_state_dict(state)
        assert_equal_steps(play(other, 20), play(player, 20))
        for one in (player, other):
            one.truncate([True, True])
        assert_equal_steps(play(other, 9), play(player, 9))


def test_a_state_of_another_version_or_setting_is_refused_and_nothing_changes():
    with make() as player, make() as undisturbed:
        assert np.array_equal(player.reset(), undisturbed.reset())
        state = player.state_dict()
        state["inside"]["ale_py"] = "0.1"
        with pytest.raises(ValueError, match="'ale_py': '0.1'"):
            player.load_state_dict(state)
        assert_equal_steps(play(player, 20), play(undisturbed, 20))
        with make(sticky=0.25) as other, pytest.raises(ValueError, match="'sticky': 0.25"):
            other.load_state_dict(player.state_dict())


@pytest.mark.parametrize("name, well", [("breakout", True), ("tetris", False), ("qbert", False)])
def test_it_is_known_which_games_are_restored_well(name, well, monkeypatch):
    warnings = []
    monkeypatch.setattr(logger, "warning", warnings.append)
    _emulator.clones_exactly.cache_clear()
    for _ in range(2):
        with AtariPlayers(any_rom(name), backend="single") as player:
            assert player.can_save is well
    assert len(warnings) == (not well)
    assert all(f"does not restore {any_rom(name)} exactly" in line for line in warnings)
