"""Environments of gymnasium, or of the older gym, as a `Player` or as an `RLEnvironment` of 2017.

Understands gymnasium and gym 0.21 to 0.26: steps of four or five parts, resets with and without
an info. Neither has to be installed for environments that only look like theirs.
"""

import importlib
import importlib.util
import inspect
import operator
import threading
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count
from tensorpack.utils.optional import require

from .envbase import DiscreteActionSpace, RLEnvironment
from .player import EpisodeTracker, Player, PlayerStep

_ENV_LOCK = threading.Lock()  # environments register and load things while they are made


class GymPlayers(Player):
    """N environments with discrete actions, stepped one after the other in the calling thread.

    Args:
      make_env: the id of an environment, such as "CartPole-v1", or a function that makes one.
      num_envs: how many.
      seed: of the environments, each of which gets its own from it, for the first `reset`.
      max_episode_actions: a game is truncated after so many actions; None leaves it to the
        environments.

    Attributes:
      envs: the environments.
    """

    def __init__(
        self,
        make_env: Union[str, Callable[[], Any]],
        num_envs: int = 1,
        *,
        seed: int = 0,
        max_episode_actions: Optional[int] = None,
    ):
        self.num_envs = as_count(self, "num_envs", num_envs)
        self._tracker = EpisodeTracker(self.num_envs, max_episode_actions)
        make = partial(_make, make_env) if isinstance(make_env, str) else make_env
        self.envs: List[Any] = [make() for _ in range(self.num_envs)]
        if len({id(env) for env in self.envs}) < self.num_envs:
            raise ValueError("make_env returned the same environment twice; make new ones.")
        traits = [_traits(env) for env in self.envs]
        if any(other != traits[0] for other in traits):
            raise ValueError(f"The environments are not alike: {traits}.")
        self.num_actions, self._first_action, self.frame_shape, self.frame_dtype = traits[0]
        self._seeds: Optional[List[int]] = self._seeds_from(seed)

    def _seeds_from(self, seed: int) -> List[int]:
        return np.random.RandomState(seed).randint(2**31 - 1, size=self.num_envs).tolist()

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        seeds = self._seeds if seed is None else self._seeds_from(seed)
        self._seeds = None  # they are used once
        frames, lives = self._new_frames()
        for i, env in enumerate(self.envs):
            observation, info = _reset_env(env, None if seeds is None else seeds[i])
            frames[i], lives[i] = self._frame(env, observation), _lives(info)
        self._tracker.begin(lives)
        return frames

    def _step(self, actions: np.ndarray) -> PlayerStep:
        frames, lives = self._new_frames()
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated, truncated = np.zeros((2, self.num_envs), dtype=bool)
        for i, env in enumerate(self.envs):
            if self._tracker.ended[i]:
                observation, info = _reset_env(env, None)
            else:
                result = env.step(int(actions[i]) + self._first_action)
                observation, rewards[i], terminated[i], truncated[i], info = _five_parts(result)
            frames[i], lives[i] = self._frame(env, observation), _lives(info)
        return self._tracker.record(frames, rewards, terminated, lives, truncated)

    def _truncate(self, mask: np.ndarray) -> None:
        self._tracker.ended = self._tracker.ended | mask

    def _save_obstacle(self) -> str:
        return "gym has no common way to save an environment"

    def _close(self) -> None:
        for env in self.envs:
            env.close()

    def _frame(self, env: Any, observation: Any) -> np.ndarray:
        """Returns an observation as an array; an assignment would stretch, cut or wrap others."""
        frame, dtype = np.asarray(observation), self.frame_dtype
        same_kind = frame.dtype == dtype or frame.dtype.kind == dtype.kind == "f"
        if frame.shape != self.frame_shape or not (
            same_kind or np.array_equal(frame, frame.astype(dtype))
        ):
            raise ValueError(
                f"{env} returned an observation of {frame.dtype} {list(frame.shape)}, but its "
                f"observation_space says {dtype} {list(self.frame_shape)}. Make them agree."
            )
        return frame

    def _new_frames(self) -> Tuple[np.ndarray, np.ndarray]:
        shape = (self.num_envs,) + self.frame_shape
        return np.zeros(shape, self.frame_dtype), np.zeros(self.num_envs, np.int64)


class GymEnv(RLEnvironment):
    """One environment with discrete actions, as scripts of 2017 use it.

    Its statistic is "score", the sum of the rewards of a game. Threads may make several at once.

    Args:
      name: id of the environment, such as "CartPole-v1".
      dumpdir: folder for videos of some games, by gymnasium's `RecordVideo`, which needs moviepy.
      viz: shows the game in a window, without `dumpdir`. A number, in 2017 the pause between
        frames, counts as true.
      auto_restart: a new game begins where one ends. Otherwise call `finish_episode` and
        `restart_episode`, or wrap this in an `AutoRestartPlayer`.

    Attributes:
      gymenv: the environment of gymnasium or gym.
    """

    def __init__(
        self,
        name: str,
        dumpdir: Optional[str] = None,
        viz: Union[bool, float] = False,
        auto_restart: bool = True,
    ):
        super().__init__()
        mode = "rgb_array" if dumpdir else "human" if viz else None
        with _ENV_LOCK:
            self.gymenv = _make(name, **({"render_mode": mode} if mode else {}))
            num_actions, self._first_action, _, _ = _traits(self.gymenv)
            if dumpdir:
                self.gymenv = require(f"{_gym()}.wrappers").RecordVideo(self.gymenv, dumpdir)
        self._auto_restart = auto_restart
        self._space = DiscreteActionSpace(num_actions)
        self.restart_episode()

    def current_state(self) -> np.ndarray:
        return self._state.copy()

    def action(self, act: int) -> Tuple[float, bool]:
        """Takes an action in [0, num_actions)."""
        result = self.gymenv.step(operator.index(act) + self._first_action)
        state, reward, terminated, truncated, _ = _five_parts(result)
        self._state = np.array(state)
        self._score += float(reward)
        over = bool(terminated or truncated)
        if over and self._auto_restart:
            self.finish_episode()
            self.restart_episode()
        return float(reward), over

    def restart_episode(self) -> None:
        self._state = np.array(_reset_env(self.gymenv, None)[0])
        self._score = 0.0

    def finish_episode(self) -> None:
        self.stats["score"].append(self._score)

    def get_action_space(self) -> DiscreteActionSpace:
        return self._space

    def close(self) -> None:
        self.gymenv.close()


def _traits(env: Any) -> Tuple[int, int, Tuple[int, ...], np.dtype]:
    """Returns number of actions, first action, shape and dtype of the observations."""
    actions, observations = env.action_space, env.observation_space
    if np.ndim(getattr(actions, "n", [])) != 0 or getattr(actions, "shape", None):  # MultiBinary
        raise ValueError(
            f"{env} has the action space {actions}; only discrete actions can be played. Wrap the "
            "environment so that it has a Discrete space."
        )
    shape, dtype = (getattr(observations, name, None) for name in ("shape", "dtype"))
    if shape is None or dtype is None:
        raise ValueError(
            f"{env} has the observation space {observations}; observations must be arrays of one "
            "shape. Flatten them, with FlattenObservation for example."
        )
    return int(actions.n), int(getattr(actions, "start", 0)), tuple(shape), np.dtype(dtype)


def _gym() -> str:
    installed = [name for name in ("gymnasium", "gym") if importlib.util.find_spec(name)]
    return (installed or ["gymnasium"])[0]


def _make(env_id: str, **options: Any) -> Any:
    """Makes an environment by its id, with gymnasium or else gym."""
    gym = require(_gym())
    # Of ale-py's games gymnasium 1.0 and later know nothing until it is imported.
    if env_id not in getattr(gym, "registry", [env_id]) and importlib.util.find_spec("ale_py"):
        importlib.import_module("ale_py")
    return gym.make(env_id, **options)


def _reset_env(env: Any, seed: Optional[int]) -> Tuple[Any, Dict[str, Any]]:
    """Begins a game; returns the observation and the info ({} where there is none)."""
    options = {}
    if seed is not None:
        # Wrappers take any keyword, so the environment inside tells if `seed` is one of them.
        inside = getattr(env, "unwrapped", env)
        if "seed" in inspect.signature(inside.reset).parameters:
            options["seed"] = seed
        elif hasattr(inside, "seed"):  # gym 0.21
            env.seed(seed)
    result = env.reset(**options)
    # gym before 0.26 returns the observation alone.
    has_info = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)
    return result if has_info else (result, {})


def _five_parts(result: Tuple[Any, ...]) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
    """Returns observation, reward, terminated, truncated and info, also for a step of gym."""
    if len(result) == 5:
        return result
    observation, reward, done, info = result  # of gym
    truncated = bool(done and info.get("TimeLimit.truncated", False))
    return observation, reward, bool(done) and not truncated, truncated, info


def _lives(info: Dict[str, Any]) -> int:
    """Returns the lives left, as Atari environments report them; 0 if there is no report."""
    return int(info.get("lives", info.get("ale.lives", 0)))
