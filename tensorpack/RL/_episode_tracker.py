"""Tracks the games of N environments: lengths, scores, lives, and which of them must be reset."""

from typing import Any, Dict, List, Optional

import numpy as np

from tensorpack.utils.checks import as_count

from .player import PlayerStep

_COUNTS = {"ended": np.bool_, "lengths": np.int64, "scores": np.float64, "lives": np.int64}


class EpisodeTracker:
    """Turns what N environments report into steps of the `Player` contract.

    Args:
      num_envs: how many.
      max_actions: a game is truncated after so many actions; None for no limit.

    Attributes:
      ended: bool `[N]`, True where the next step begins a new game.

    Raises:
      TypeError: if the limit is not a number.
      ValueError: if the limit is not a whole number of at least 1.
    """

    def __init__(self, num_envs: int, max_actions: Optional[int] = None):
        if max_actions is not None:
            max_actions = as_count("Player", "the limit of actions in a game", max_actions)
        self._max_actions = max_actions
        self.ended = np.zeros(num_envs, dtype=bool)
        self.begin(np.zeros(num_envs, dtype=np.int64))

    def begin(self, lives: np.ndarray) -> None:
        """Starts a game in every environment, with these lives, int `[N]`."""
        self.ended = np.zeros_like(self.ended)
        self._lengths = np.zeros(self.ended.shape, dtype=np.int64)
        self._scores = np.zeros(self.ended.shape, dtype=np.float64)
        self._lives = np.array(lives, dtype=np.int64)

    def record(
        self,
        frames: np.ndarray,
        reward: np.ndarray,
        terminated: np.ndarray,
        lives: np.ndarray,
        truncated: Optional[np.ndarray] = None,
    ) -> PlayerStep:
        """Records one step of all environments; those that had ended were reset in it.

        Args:
          frames: `[N, ...]`, passed on as they are.
          reward: `[N]`, ignored where a game began.
          terminated: bool `[N]`, the same.
          lives: int `[N]`, what is left.
          truncated: bool `[N]`, games that the environment itself cut off.
        """
        reset = self.ended
        scored = np.where(reset, 0, reward)
        self._lengths = np.where(reset, 0, self._lengths + 1)
        self._scores = np.where(reset, 0, self._scores + scored)
        terminated = terminated & ~reset
        cut = np.zeros_like(reset) if truncated is None else truncated
        if self._max_actions is not None:
            cut = cut | (self._lengths >= self._max_actions)
        cut = cut & ~terminated & ~reset
        self.ended = terminated | cut
        life_lost = (lives < self._lives) & ~self.ended & ~reset
        self._lives = np.array(lives, dtype=np.int64)
        score = np.where(self.ended, self._scores, np.nan)
        # `reset` was not returned before, so from now on it belongs to the caller.
        return PlayerStep(
            frames, scored.astype(np.float32), terminated, cut, life_lost, reset, score
        )

    def state_dict(self) -> Dict[str, Any]:
        """Returns copies of all counts."""
        counts = (self.ended, self._lengths, self._scores, self._lives)
        return {name: count.copy() for name, count in zip(_COUNTS, counts)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores the counts."""
        counts: List[Any] = [np.array(state[name], dtype=kind) for name, kind in _COUNTS.items()]
        self.ended, self._lengths, self._scores, self._lives = counts
