"""What a player cannot do unless it overrides the hook of it."""

import pytest

from tensorpack.RL.player import Player


def test_the_base_class_can_do_nothing_by_itself():
    player = Player()
    player.num_envs, player.num_actions = 1, 1
    player._started = True
    assert not player.can_save
    with pytest.raises(RuntimeError, match="Player cannot end a game from outside"):
        player.truncate([True])
    with pytest.raises(RuntimeError, match="Player cannot save its state or restore one"):
        player.load_state_dict({})
