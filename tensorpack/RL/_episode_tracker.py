"""Tracks the games of N environments: lengths, scores, lives, and which of them must be reset."""

from typing import Any, Dict, List, Optional

import numpy as np

from tensorpack.utils.checks import as_count

from .player import PlayerStep

_COUNTS = {"ended": np.bool_, "lengths": np.int64, "scores": np.float64, "lives": np.int64}


class EpisodeTracker:
    """Turns what N environments report into steps of the `Player` contract.

    A game is truncated after `max_actions`; None for no limit. `ended`, bool `[N]`, is True where
    the next step begins a new game.
    """

    def __init__(self, num_envs: int, max_actions: Optional[int] = None):
        if max_actions is not None:
            max_actions = as_count("Player", "the limit of actions in a game", max_actions)
        self._max_actions = max_actions
        self.begin(np.zeros(num_envs, dtype=np.int64))

    def begin(self, lives: np.ndarray) -> None:
        """Starts a game in every environment, with these lives, int `[N]`."""
        self._lives = np.array(lives, dtype=np.int64)
        self._lengths = np.zeros_like(self._lives)
        self._scores = np.zeros(self._lives.shape)
        self.ended = np.zeros(self._lives.shape, dtype=bool)

    def record(
        self,
        frames: np.ndarray,
        reward: np.ndarray,
        terminated: np.ndarray,
        lives: np.ndarray,
        truncated: Optional[np.ndarray] = None,
    ) -> PlayerStep:
        """Records one step of all environments; those that had ended were reset in it.

        Where a game began, `reward` and `terminated` are ignored. `truncated` are the games that
        the environment itself cut off. Frames are passed on as they are.
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
        counts = (self.ended, self._lengths, self._scores, self._lives)
        return {name: count.copy() for name, count in zip(_COUNTS, counts)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        counts: List[Any] = [np.array(state[name], dtype=kind) for name, kind in _COUNTS.items()]
        self.ended, self._lengths, self._scores, self._lives = counts
