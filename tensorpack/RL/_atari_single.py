"""Atari games one after the other on `ALEInterface`: any ale-py, any game, state that is saved."""

from functools import partial
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ._emulator import FRAME_SIZE, Emulator
from ._revival import Revival

__all__ = ["SingleBackend"]


class SingleBackend:
    """N emulators in the calling thread.

    Args:
      rom: path that `check_rom` has passed.
      seeds: one for each emulator, in [1, 2**31).
      frame_skip: emulator frames for which an action is held.
      max_noops: a new game begins with fewer than so many frames without an action; 0 for none.
    """

    def __init__(self, rom: str, seeds: List[int], *, frame_skip: int, max_noops: int):
        self._rom = rom
        self._make = partial(Emulator, rom, frame_skip=frame_skip, max_noops=max_noops)
        self._emulators = [self._make(seed) for seed in seeds]
        self.action_names = self._emulators[0].action_names

    def reset(self, seeds: Optional[List[int]]) -> Tuple[np.ndarray, np.ndarray]:
        """Begins new games, from new seeds if given; returns frames and lives."""
        frames = self._new_frames()
        for i, emulator in enumerate(self._emulators):
            if seeds is not None:
                emulator.seed(seeds[i])
            emulator.reset(frames[i])
        return frames, self._lives()

    def step(
        self, actions: np.ndarray, ended: np.ndarray
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Acts, or begins a new game where `ended`; returns frames, rewards, over and lives."""
        frames = self._new_frames()
        rewards = np.zeros(len(self._emulators), dtype=np.float64)
        over = np.zeros(len(self._emulators), dtype=bool)
        for i, emulator in enumerate(self._emulators):
            if ended[i]:
                emulator.reset(frames[i])
            else:
                rewards[i], over[i] = emulator.act(actions[i], frames[i])
        return frames, rewards, over, self._lives()

    def screen(self, index: int) -> np.ndarray:
        """Returns a game's screen in colour, uint8 `[height, width, 3]`."""
        return self._emulators[index].screen()

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state of every emulator."""
        return {str(i): emulator.state_dict() for i, emulator in enumerate(self._emulators)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores it, or leaves all as it is.

        Raises:
          ValueError: a game cannot be brought back with this version of ale-py.
        """
        revival = Revival(self._rom, self._make)
        count = len(self._emulators)
        self._emulators = [revival.revive(state[str(i)]) for i in range(count)]

    def close(self) -> None:
        """Lets go of the emulators."""
        self._emulators = []

    def _new_frames(self) -> np.ndarray:
        return np.empty((len(self._emulators), FRAME_SIZE, FRAME_SIZE), dtype=np.uint8)

    def _lives(self) -> np.ndarray:
        return np.array([emulator.lives for emulator in self._emulators], dtype=np.int64)
