"""What every player must do: the tests that the library has for the players of its users, too."""

from tensorpack.RL.testing import PlayerContract

__all__ = ["PlayerContract"]
