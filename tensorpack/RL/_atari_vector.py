"""Atari games in ale-py's own C++ threads, through `ALEVectorInterface`."""

from typing import Any, List, Optional, Tuple

import numpy as np

from ._emulator import FRAME_SIZE
from .rom import load_ale

__all__ = ["VectorBackend"]

# More frames than a game can have (19 years); the interface takes no None.
_NO_LIMIT = 1 << 30
# Stands for "go on with the random streams at hand".
_SAME_SEED = -1


class VectorBackend:
    """N emulators in C++ threads, which run without Python's lock.

    The interface begins a new game by itself in the step after one is over, as the contract of
    `Player` has it. Games that were truncated are begun anew by us, in the same step.

    Args:
      rom: path that `check_rom` has passed.
      seeds: one for each emulator, in [1, 2**31).
      frame_skip: emulator frames for which an action is held.
      max_noops: a new game begins with fewer than so many frames without an action; 0 for none.
    """

    def __init__(self, rom: str, seeds: List[int], *, frame_skip: int, max_noops: int):
        ale_py = load_ale()
        self._seeds: Optional[List[int]] = seeds
        self._num_envs = len(seeds)
        self._ale = ale_py.ALEVectorInterface(
            rom_path=rom,
            num_envs=self._num_envs,
            frame_skip=frame_skip,
            stack_num=1,
            img_height=FRAME_SIZE,
            img_width=FRAME_SIZE,
            noop_max=max_noops,  # it draws from [0, noop_max)
            use_fire_reset=False,
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            # Its own limit leaves out a screen of the last frame, so we have ours.
            max_episode_steps=_NO_LIMIT,
            repeat_action_probability=0.0,
        )
        self.action_names = [action.name for action in self._ale.get_action_set()]
        self._over = np.zeros(self._num_envs, dtype=bool)
        self._strength = np.ones(self._num_envs, dtype=np.float32)

    def reset(self, seeds: Optional[List[int]]) -> Tuple[np.ndarray, np.ndarray]:
        """Begins new games, from new seeds if given; returns frames and lives."""
        if seeds is None:  # the first time from the constructor's
            seeds = self._seeds or [_SAME_SEED] * self._num_envs
        self._seeds = None
        self._over = np.zeros(self._num_envs, dtype=bool)
        observations, info = self._ale.reset(list(range(self._num_envs)), seeds)
        return _frames(observations), np.array(info["lives"], dtype=np.int64)

    def step(
        self, actions: np.ndarray, ended: np.ndarray
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Acts, or begins a new game where `ended`; returns frames, rewards, over and lives."""
        truncated = np.flatnonzero(ended & ~self._over)
        self._ale.send(actions, self._strength)
        observations, rewards, over, _, info = self._ale.recv()
        frames, lives = _frames(observations), np.array(info["lives"], dtype=np.int64)
        over = np.array(over)
        if truncated.size:  # their step was in vain
            observations, info = self._ale.reset(truncated.tolist(), [_SAME_SEED] * truncated.size)
            frames[truncated] = _frames(observations)[truncated]
            lives[truncated] = info["lives"][truncated]
            over[truncated] = False
        self._over = over
        return frames, np.array(rewards), over, lives

    def close(self) -> None:
        """Ends the threads."""
        self._ale = None


def _frames(observations: Any) -> np.ndarray:
    # A copy, so that no array of ours lies in memory of the C++ side.
    return np.array(observations[:, 0])
