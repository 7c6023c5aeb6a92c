"""Atari games as a `Player`: 84 x 84 grey frames, an action held for four, raw scores."""

import operator
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils.rng import SeedTree

from ._atari_single import SingleBackend
from ._atari_vector import VectorBackend
from ._emulator import FRAME_SIZE
from ._ledger import Ledger
from .player import Player, PlayerStep
from .rom import check_rom, find_rom, load_ale

__all__ = ["AtariPlayers"]

_BACKENDS = ("auto", "single", "vector")
# Before this one, resetting some of the games hangs (0.11.0, 0.11.2 and 0.12.0 were tried).
_VECTOR_RELEASE = (0, 12, 1)


class AtariPlayers(Player):
    """N copies of one Atari game, stepped together.

    A frame is the maximum of the last two grey screens (sprites flicker on this machine), shrunk
    to 84 x 84. The actions are those the game knows (4 in Breakout), never sticky. A lost life does
    not end a game: it is reported as `life_lost`. A new game begins with a random number of frames
    without an action, from a stream of each environment's own, so that no two play in step.

    Both backends give the same steps for the same seed and actions (on Linux).

    Args:
      rom: name or path of the game, see `find_rom`.
      num_envs: how many.
      frame_skip: emulator frames for which an action is held.
      seed: root of the environments' random streams, for the first `reset`.
      backend: "single" steps one emulator after the other in the calling thread; it can save its
        state and show its screen. "vector" steps them in C++ threads, without Python's lock
        (ale-py 0.12.1 and later). "auto" takes "vector" for several environments where it can.
      max_noops: a game begins with fewer than so many frames without an action; 0 for none.
      max_episode_actions: a game is truncated after so many actions; None for no limit.

    Attributes:
      rom: path of the game's file.
      game: the game's name, such as "breakout".
      backend: "single" or "vector".
      action_names: such as `["NOOP", "FIRE", "RIGHT", "LEFT"]`.

    Raises:
      FileNotFoundError: if there is no such game.
      ValueError: if the file is no game, or an option is out of range or not possible together.
      ImportError: if ale-py, or OpenCV for "single", is not installed.
    """

    def __init__(
        self,
        rom: str,
        num_envs: int = 1,
        *,
        frame_skip: int = 4,
        seed: int = 0,
        backend: str = "auto",
        max_noops: int = 30,
        max_episode_actions: Optional[int] = None,
    ):
        self.num_envs = _at_least("num_envs", num_envs, 1)
        self.frame_shape = (FRAME_SIZE, FRAME_SIZE)
        skip, max_noops = (
            _at_least("frame_skip", frame_skip, 1),
            _at_least("max_noops", max_noops, 0),
        )
        self._ledger = Ledger(self.num_envs, max_episode_actions)
        self.rom = find_rom(rom)
        self.game = check_rom(self.rom)
        self.backend = _choose(backend, self.num_envs, skip)
        make: Any = VectorBackend if self.backend == "vector" else SingleBackend
        options = {"frame_skip": skip, "max_noops": max_noops}
        self._games = make(self.rom, self._seeds(seed), **options)
        self._settings = {"game": self.game, **options}
        self.action_names: List[str] = self._games.action_names
        self.num_actions = len(self.action_names)

    @property
    def identity(self) -> Dict[str, Any]:
        """The name of the game, and for how many frames of it an action counts."""
        return {name: self._settings[name] for name in ("game", "frame_skip")}

    def screen(self, index: int = 0) -> np.ndarray:
        """Returns the screen of one game in colour, uint8 `[height, width, 3]`, red first.

        Raises:
          RuntimeError: before `reset()`, after `close()`, or with backend "vector".
        """
        self._check_started()
        if self.backend != "single":
            raise RuntimeError(f"This is not possible: {self._single_alone('show its screen')}.")
        return self._games.screen(index)

    def _seeds(self, seed: int) -> List[int]:
        root = SeedTree(seed).child("atari")
        # The vector interface does not take 0 for a seed.
        return [max(1, root.child(i).integer()) for i in range(self.num_envs)]

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        frames, lives = self._games.reset(None if seed is None else self._seeds(seed))
        self._ledger.begin(lives)
        return frames

    def _step(self, actions: np.ndarray) -> PlayerStep:
        return self._ledger.record(*self._games.step(actions, self._ledger.ended))

    def _truncate(self, mask: np.ndarray) -> None:
        self._ledger.ended = self._ledger.ended | mask

    def _save_obstacle(self) -> str:
        return "" if self.backend == "single" else self._single_alone("save its state")

    def _state_dict(self) -> Dict[str, Any]:
        return {
            **self._settings,
            "ledger": self._ledger.state_dict(),
            "emulators": self._games.state_dict(),
        }

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        theirs = {name: state[name] for name in self._settings}
        if theirs != self._settings:
            raise ValueError(f"The state has {theirs}, this player has {self._settings}.")
        self._games.load_state_dict(state["emulators"])
        self._ledger.load_state_dict(state["ledger"])

    def _close(self) -> None:
        self._games.close()

    def _single_alone(self, verb: str) -> str:
        return f"backend {self.backend!r} cannot {verb}, use backend='single'"


def _choose(backend: str, num_envs: int, frame_skip: int) -> str:
    """Returns "single" or "vector".

    Raises:
      ValueError: if the backend is unknown, or "vector" is asked for and not possible.
    """
    if backend not in _BACKENDS:
        raise ValueError(f"The backend is one of {', '.join(_BACKENDS)}, got {backend!r}.")
    if backend == "single" or (backend == "auto" and num_envs == 1):
        return "single"
    obstacle = _vector_obstacle(frame_skip)
    if obstacle and backend == "vector":
        raise ValueError(f"backend='vector' is not possible: {obstacle}; use 'single'.")
    return "single" if obstacle else "vector"


def _vector_obstacle(frame_skip: int) -> str:
    ale_py = load_ale()
    if not hasattr(ale_py, "ALEVectorInterface"):
        return f"ale-py {ale_py.__version__} has no vector interface (or gymnasium is missing)"
    if _release(ale_py.__version__) < _VECTOR_RELEASE:
        return (
            f"ale-py {ale_py.__version__} hangs when some of the games are reset; 0.12.1 does not"
        )
    if frame_skip == 1:
        return "with frame_skip=1 it leaves out the screen before the last"
    return ""


def _release(version: str) -> Tuple[int, ...]:
    """The numbers of a version: (0, 12, 1) for "0.12.1"."""
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())


def _at_least(name: str, value: int, least: int) -> int:
    if operator.index(value) < least:
        raise ValueError(f"{name} is at least {least}, got {value}.")
    return operator.index(value)
