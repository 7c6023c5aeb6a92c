"""Atari games as a `Player`: 84 x 84 grey frames, an action held for four, raw scores."""

import re
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils.checks import as_count, as_number
from tensorpack.utils.rng import SeedTree, rng_state

from ._emulator import FRAME_SIZE, Emulator, clones_exactly
from .player import EpisodeTracker, Player, PlayerStep
from .rom import check_rom, find_rom, load_ale

_BACKENDS = ("auto", "single", "vector")
_FIRE = "FIRE"
# Before this one, resetting some of the games hangs (0.11.0, 0.11.2 and 0.12.0 were tried).
_VECTOR_RELEASE = (0, 12, 1)
# Options of the vector interface: no frame limit (2**30 is 19 years), keep the random streams.
_NO_LIMIT, _SAME_SEED = 1 << 30, -1
_Step = Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # frames, rewards, over, lives


class AtariPlayers(Player):
    """N copies of one Atari game, stepped together.

    A frame is the maximum of the last two grey screens (sprites flicker on this machine), resized
    to 84 x 84. The actions are those of the game (4 in Breakout). A lost life is reported as
    `life_lost` and does not end the game. A new game begins with a random number of frames without
    an action, from a random stream of each environment, so that no two are in step.

    Both backends give the same steps for the same seed and actions (on Linux, without `sticky`).

    Args:
      rom: name or path of the game; FileNotFoundError if `find_rom` does not find it.
      num_envs: how many.
      frame_skip: emulator frames for which an action is held.
      seed: root of the environments' random streams, for the first `reset`.
      backend: "single" steps one emulator after the other in the calling thread; it can save its
        state and show its screen; a warning names a game that ale-py does not restore exactly and
        that it does not save. "vector" steps them in C++ threads, without Python's lock (ale-py
        0.12.1 and later). "auto" is "vector" for several environments if possible.
      max_noops: a game begins with fewer frames than this without an action; 0 for none.
      sticky: probability with which a frame repeats the action of the frame before, ale-py's
        `repeat_action_probability` (Machado et al., 2018, Revisiting the Arcade Learning
        Environment, who use 0.25).
      fire_on_reset: the first action of a game, and the first one after a lost life, is FIRE,
        whatever was asked for (`PlayerStep.taken` says so); many games wait for it. Changes
        nothing in a game without that action.
      max_episode_actions: a game is truncated after this number of actions; None for no limit.

    Attributes:
      rom: path of the game's file.
      game: the game's name, such as "breakout".
      backend: "single" or "vector".
      fire_on_reset: True if it was asked for and the game has that action.
      action_names: such as `["NOOP", "FIRE", "RIGHT", "LEFT"]`.
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
        sticky: float = 0.0,
        fire_on_reset: bool = False,
        max_episode_actions: Optional[int] = None,
    ):
        self.num_envs = as_count(self, "num_envs", num_envs)
        self.frame_shape = (FRAME_SIZE, FRAME_SIZE)
        skip = as_count(self, "frame_skip", frame_skip)
        max_noops = as_count(self, "max_noops", max_noops, least=0)
        sticky = as_number(self, "sticky", sticky, least=0.0, most=1.0)
        self._tracker = EpisodeTracker(self.num_envs, max_episode_actions)
        self.rom = find_rom(rom)
        self.game = check_rom(self.rom)
        self.backend = _choose_backend(backend, self.num_envs, skip)
        make: Any = _VectorBackend if self.backend == "vector" else _SingleBackend
        options = {"frame_skip": skip, "max_noops": max_noops, "sticky": sticky}
        self._games = make(self.rom, self._seeds(seed), **options)
        self.action_names: List[str] = self._games.action_names
        self.num_actions = len(self.action_names)
        self.fire_on_reset = fire_on_reset and _FIRE in self.action_names
        self._needs_fire = np.zeros(self.num_envs, dtype=bool)  # for FIRE
        self._settings = {"game": self.game, **options, "fire_on_reset": self.fire_on_reset}
        self._settings["ale_py"] = load_ale().__version__  # reads its own states alone

    @property
    def identity(self) -> Dict[str, Any]:
        names = ["game", "frame_skip", *(["sticky"] if self._settings["sticky"] else [])]
        return {name: self._settings[name] for name in names}

    def screen(self, index: int = 0) -> np.ndarray:
        """Returns the screen of one game in colour, uint8 `[height, width, 3]`, red first.

        Backend "vector" has none, and raises RuntimeError.
        """
        self._check_started()
        if self.backend != "single":
            raise RuntimeError("Backend 'vector' cannot show its screen; use backend='single'.")
        return self._games.emulators[index].screen()

    def _seeds(self, seed: int) -> List[int]:
        root = SeedTree(seed).child("atari")
        # The vector interface does not take 0 for a seed.
        return [max(1, root.child(i).integer()) for i in range(self.num_envs)]

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        frames, lives = self._games.reset(None if seed is None else self._seeds(seed))
        self._tracker.begin(lives)
        self._needs_fire = np.full(self.num_envs, self.fire_on_reset)
        return frames

    def _step(self, actions: np.ndarray) -> PlayerStep:
        if not self.fire_on_reset:
            return self._tracker.record(*self._games.step(actions, self._tracker.ended))
        taken = np.where(self._needs_fire, self.action_names.index(_FIRE), actions)
        step = self._tracker.record(*self._games.step(taken, self._tracker.ended))
        self._needs_fire = step.reset | step.life_lost
        return step._replace(taken=taken)

    def _truncate(self, mask: np.ndarray) -> None:
        self._tracker.ended = self._tracker.ended | mask

    def _save_obstacle(self) -> str:
        if self.backend == "vector":
            return "backend 'vector' has no state; use 'single'"
        # opens the game twice, which takes a fifth of a second: not before the first save
        return "" if clones_exactly(self.rom) else "ale-py does not restore this game exactly"

    def _state_dict(self) -> Dict[str, Any]:
        emulators = enumerate(self._games.emulators)
        return {
            **self._settings,
            "waits": self._needs_fire.copy(),
            "tracker": self._tracker.state_dict(),
            "emulators": {str(i): emulator.state_dict() for i, emulator in emulators},
        }

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        state = state if "tracker" in state else _of_first_form(state)
        settings = {name: state[name] for name in self._settings}
        if settings != self._settings:
            raise ValueError(f"The state has {settings}, this player has {self._settings}.")
        for i, emulator in enumerate(self._games.emulators):
            emulator.load_state_dict(state["emulators"][str(i)])
        self._tracker.load_state_dict(state["tracker"])
        self._needs_fire = np.array(state["waits"])

    def _close(self) -> None:
        self._games = None


def _choose_backend(backend: str, num_envs: int, frame_skip: int) -> str:
    """Returns "single" or "vector"."""
    if backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}, got {backend!r}.")
    if backend == "single" or (backend == "auto" and num_envs == 1):
        return "single"
    ale_py = load_ale()
    release = tuple(int(part) for part in re.findall("[0-9]+", ale_py.__version__)[:3])
    obstacle = ""
    if not hasattr(ale_py, "ALEVectorInterface"):
        obstacle = f"ale-py {ale_py.__version__} has no vector interface (or gymnasium is missing)"
    elif release < _VECTOR_RELEASE:
        obstacle = f"ale-py {ale_py.__version__} hangs when some games are reset; 0.12.1 does not"
    elif frame_skip == 1:
        obstacle = "with frame_skip=1 it leaves out the screen before the last"
    if obstacle and backend == "vector":
        raise ValueError(f"backend='vector' is not possible: {obstacle}; use 'single'.")
    return "single" if obstacle else "vector"


def _of_first_form(state: Dict[str, Any]) -> Dict[str, Any]:
    """Returns a state in its present form; the first one had other names."""
    emulators = {}
    for name, old in state["emulators"].items():
        noops, sticky = old["noops"], old["sticky"]
        rng = np.random.RandomState()
        rng.set_state(("MT19937", noops["keys"], noops["position"], 0, 0.0))
        new = {"noops": rng_state(rng), "held": sticky["held"], "repeats": sticky["rng"]}
        emulators[name] = {**old, **new}
        state = {**state, "ale_py": old["ale_py"]}
    return {**state, "tracker": state["ledger"], "emulators": emulators}


class _SingleBackend:
    """N emulators in the calling thread, with `seeds` in [1, 2**31); options as of `Emulator`."""

    def __init__(self, rom: str, seeds: List[int], **options: Any):
        self.emulators = [Emulator(rom, seed, **options) for seed in seeds]
        self.action_names = self.emulators[0].action_names

    def reset(self, seeds: Optional[List[int]]) -> Tuple[np.ndarray, np.ndarray]:
        """Begins new games, from new seeds if given; returns frames and lives."""
        frames = self._new_frames()
        for i, emulator in enumerate(self.emulators):
            if seeds is not None:
                emulator.seed(seeds[i])
            emulator.reset(frames[i])
        return frames, self._lives()

    def step(self, actions: np.ndarray, ended: np.ndarray) -> _Step:
        """Acts, or begins a new game where `ended`; returns frames, rewards, over and lives."""
        frames = self._new_frames()
        rewards, over = np.zeros(len(frames)), np.zeros(len(frames), dtype=bool)
        for i, emulator in enumerate(self.emulators):
            if ended[i]:
                emulator.reset(frames[i])
            else:
                rewards[i], over[i] = emulator.act(actions[i], frames[i])
        return frames, rewards, over, self._lives()

    def _new_frames(self) -> np.ndarray:
        return np.empty((len(self.emulators), FRAME_SIZE, FRAME_SIZE), dtype=np.uint8)

    def _lives(self) -> np.ndarray:
        return np.array([emulator.lives for emulator in self.emulators], dtype=np.int64)


class _VectorBackend:
    """N emulators in C++ threads, which run without Python's lock.

    As in the contract of `Player`, the interface begins a new game in the step after one is over.
    Truncated games are reset here, in the same step.
    """

    def __init__(
        self, rom: str, seeds: List[int], *, frame_skip: int, max_noops: int, sticky: float
    ):
        self._seeds: Optional[List[int]] = seeds
        self._num_envs = len(seeds)
        self._ale = load_ale().ALEVectorInterface(
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
            # Its own limit leaves out a screen of the last frame; the tracker has another.
            max_episode_steps=_NO_LIMIT,
            repeat_action_probability=sticky,
        )
        self.action_names = [action.name for action in self._ale.get_action_set()]
        self._over = np.zeros(self._num_envs, dtype=bool)
        self._strength = np.ones(self._num_envs, dtype=np.float32)

    def reset(self, seeds: Optional[List[int]]) -> Tuple[np.ndarray, np.ndarray]:
        if seeds is None:  # the first time from the constructor's
            seeds = self._seeds or [_SAME_SEED] * self._num_envs
        self._seeds = None
        self._over = np.zeros(self._num_envs, dtype=bool)
        observations, info = self._ale.reset(list(range(self._num_envs)), seeds)
        return _frames(observations), np.array(info["lives"], dtype=np.int64)

    def step(self, actions: np.ndarray, ended: np.ndarray) -> _Step:
        truncated = np.flatnonzero(ended & ~self._over)
        self._ale.send(actions, self._strength)
        observations, rewards, over, _, info = self._ale.recv()
        frames, lives = _frames(observations), np.array(info["lives"], dtype=np.int64)
        over = np.array(over)
        if truncated.size:  # the step of these games is discarded
            observations, info = self._ale.reset(truncated.tolist(), [_SAME_SEED] * truncated.size)
            frames[truncated] = _frames(observations)[truncated]
            lives[truncated] = info["lives"][truncated]
            over[truncated] = False
        self._over = over
        return frames, np.array(rewards), over, lives


def _frames(observations: Any) -> np.ndarray:
    # A copy, so that no array lies in memory of the C++ side.
    return np.array(observations[:, 0])
