"""What the games of N environments have come to: length, score, lives, and who begins anew."""

import operator
from typing import Any, Dict, Optional

import numpy as np

from .player import PlayerStep

__all__ = ["Ledger"]


class Ledger:
    """Turns what N environments report into steps of the contract.

    Args:
      num_envs: how many.
      max_actions: a game is truncated after so many actions; None for no limit.

    Attributes:
      ended: bool `[N]`, True where the next step begins a new game.

    Raises:
      ValueError: if the limit is not positive.
    """

    def __init__(self, num_envs: int, max_actions: Optional[int] = None):
        if max_actions is not None and operator.index(max_actions) < 1:
            raise ValueError(f"A game takes at least one action, got a limit of {max_actions}.")
        self._max_actions = max_actions
        self.ended = np.zeros(num_envs, dtype=bool)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._scores = np.zeros(num_envs, dtype=np.float64)
        self._lives = np.zeros(num_envs, dtype=np.int64)

    def begin(self, lives: np.ndarray) -> None:
        """All environments are at the start of a game, with so many lives (int `[N]`)."""
        self.ended = np.zeros_like(self.ended)
        self._lengths[:] = 0
        self._scores[:] = 0
        self._lives[:] = lives

    def at_limit(self) -> np.ndarray:
        """Returns bool `[N]`: games as long as they may get."""
        if self._max_actions is None:
            return np.zeros_like(self.ended)
        return self._lengths >= self._max_actions

    def record(
        self,
        frames: np.ndarray,
        reward: np.ndarray,
        terminated: np.ndarray,
        lives: np.ndarray,
        truncated: Optional[np.ndarray] = None,
    ) -> PlayerStep:
        """Enters one step of all environments; those that had ended have been reset in it.

        Args:
          frames: `[N, ...]`, handed on as they are.
          reward: `[N]`, whatever it is where a game was begun.
          terminated: bool `[N]`, the same.
          lives: int `[N]`, what is left.
          truncated: bool `[N]`, cut off by the environment itself.
        """
        reset = self.ended
        scored = np.where(reset, 0, reward)
        self._lengths = np.where(reset, 0, self._lengths + 1)
        self._scores = np.where(reset, 0, self._scores + scored)
        terminated = terminated & ~reset
        cut = self.at_limit() if truncated is None else self.at_limit() | truncated
        cut = cut & ~terminated & ~reset
        self.ended = terminated | cut
        life_lost = (lives < self._lives) & ~self.ended & ~reset
        self._lives = np.array(lives, dtype=np.int64)
        score = np.where(self.ended, self._scores, np.nan)
        # `reset` was never given away before, so it is the caller's from now on.
        return PlayerStep(
            frames, scored.astype(np.float32), terminated, cut, life_lost, reset, score
        )

    def state_dict(self) -> Dict[str, Any]:
        """Returns copies of all counts."""
        return {
            "ended": self.ended.copy(),
            "lengths": self._lengths.copy(),
            "scores": self._scores.copy(),
            "lives": self._lives.copy(),
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores the counts."""
        self.ended = np.array(state["ended"], dtype=bool)
        self._lengths = np.array(state["lengths"], dtype=np.int64)
        self._scores = np.array(state["scores"], dtype=np.float64)
        self._lives = np.array(state["lives"], dtype=np.int64)
