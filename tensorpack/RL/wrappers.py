"""Players around players: limits on the length of games, a way out of a standstill, mapped frames.

Each wrapper takes any `Player` and is one itself. Closing the wrapper closes the wrapped player.
`ProxyPlayer` and `MapPlayerState` also take an `RLEnvironment` of 2017, and are one then.
"""

from typing import Any, Callable, Dict, Optional, Union

import numpy as np

from tensorpack.utils.checks import as_count

from . import envbase
from .player import Player, PlayerStep

_ATTRIBUTES = ("num_envs", "num_actions", "frame_shape", "frame_dtype")


class ProxyPlayer(Player, envbase.ProxyPlayer):
    """Passes every call on to another player; the base of wrappers, which override a part.

    Around an `RLEnvironment` it has the methods of that, `action` and so on.
    """

    def __init__(self, player: Union[Player, envbase.RLEnvironment]):
        self.player: Any = player
        for name in _ATTRIBUTES:
            if hasattr(player, name):
                setattr(self, name, getattr(player, name))

    @property
    def identity(self) -> Dict[str, Any]:
        return self.player.identity

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        return self.player.reset(seed)

    def _step(self, actions: np.ndarray) -> PlayerStep:
        return self.player.step(actions)

    def _truncate(self, mask: np.ndarray) -> None:
        self.player.truncate(mask)

    def _state_dict(self) -> Dict[str, Any]:
        return {"player": self.player.state_dict()}

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        self.player.load_state_dict(state["player"])

    def _save_obstacle(self) -> str:
        return self.player._save_obstacle()

    def _close(self) -> None:
        self.player.close()


class LimitLength(ProxyPlayer):
    """Truncates every game that has taken so many actions; its score is the one so far.

    Args:
      player: one whose games can be ended from outside (`truncate`).
      limit: actions in a game, at least 1.
    """

    def __init__(self, player: Player, limit: int):
        super().__init__(player)
        self._limit = as_count(self, "limit", limit)
        self._lengths = np.zeros(player.num_envs, dtype=np.int64)
        self._scores = np.zeros(player.num_envs)

    def _count(self, step: PlayerStep) -> np.ndarray:
        """Returns how many of the actions of each game count, with those of a step."""
        return np.where(step.reset, 0, self._lengths + 1)

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        self._lengths, self._scores = np.zeros_like(self._lengths), np.zeros_like(self._scores)
        return super()._reset(seed)

    def _step(self, actions: np.ndarray) -> PlayerStep:
        step = super()._step(actions)
        self._lengths = self._count(step)
        self._scores = np.where(step.reset, 0, self._scores + step.reward)
        ended = step.terminated | step.truncated
        cut = (self._lengths >= self._limit) & ~ended & ~step.reset
        if not cut.any():
            return step
        self.player.truncate(cut)
        return step._replace(
            truncated=step.truncated | cut,
            life_lost=step.life_lost & ~cut,
            episode_score=np.where(cut, self._scores, step.episode_score),
        )

    def _state_dict(self) -> Dict[str, Any]:
        counts = {"lengths": self._lengths.copy(), "scores": self._scores.copy()}
        return {**super()._state_dict(), **counts}

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        super()._load_state_dict(state)
        self._lengths, self._scores = np.array(state["lengths"]), np.array(state["scores"])


class LimitIdle(LimitLength):
    """Truncates every game that stands still: whose frame and score have not changed for so long.

    An agent that never presses the start button would wait until another limit. `limit` is a number
    of actions in a row; the rest is as in `LimitLength`.
    """

    _frames: np.ndarray

    def _count(self, step: PlayerStep) -> np.ndarray:
        changed = (step.frames != self._frames).reshape(self.num_envs, -1).any(1)
        self._frames = step.frames.copy()
        return np.where(changed | step.reset | (step.reward != 0), 0, self._lengths + 1)

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        self._frames = super()._reset(seed)
        return self._frames.copy()

    def _state_dict(self) -> Dict[str, Any]:
        idle = self._lengths.copy()
        return {**super()._state_dict(), "idle": idle, "frames": self._frames.copy()}

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        super()._load_state_dict(state)
        self._lengths, self._frames = np.array(state["idle"]), np.array(state["frames"])


class PreventStuck(ProxyPlayer):
    """Takes another action where an agent asks for the same one again and again.

    A greedy agent that never presses the start button waits forever. After it has asked for one
    action `num_repeat` times in a row within a game, that request and all further ones of the same
    action are replaced, until it asks for another action. For evaluation only.

    Args:
      player: the player to wrap.
      num_repeat: equal requests in a row that count as stuck.
      action: taken instead, in [0, num_actions); 1 is the start button of many Atari games.
    """

    def __init__(self, player: Player, num_repeat: int = 30, action: int = 1):
        super().__init__(player)
        self._num_repeat = as_count(self, "num_repeat", num_repeat)
        self._action = as_count(self, "action", action, least=0)
        if self._action >= player.num_actions:
            raise ValueError(f"PreventStuck: action must be below {player.num_actions}: {action}.")
        self._last = np.full(player.num_envs, -1, dtype=np.int64)
        self._repeats = np.zeros(player.num_envs, dtype=np.int64)

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        self._last = np.full_like(self._last, -1)
        return super()._reset(seed)

    def _step(self, actions: np.ndarray) -> PlayerStep:
        self._repeats = np.where(actions == self._last, self._repeats + 1, 1)
        self._last = actions
        stuck = self._repeats >= self._num_repeat
        taken = np.where(stuck, self._action, actions)
        step = super()._step(taken)
        self._last = np.where(step.reset, -1, self._last)
        return step if step.taken is not None else step._replace(taken=taken)

    def _state_dict(self) -> Dict[str, Any]:
        return {**super()._state_dict(), "last": self._last.copy(), "repeats": self._repeats.copy()}

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        super()._load_state_dict(state)
        self._last = np.array(state["last"], dtype=np.int64)
        self._repeats = np.array(state["repeats"], dtype=np.int64)


class MapPlayerState(ProxyPlayer):
    """Changes the frames by a function, such as a crop or another size.

    Args:
      player: the player or environment to wrap.
      func: takes the frames of all environments, `[N, *frame_shape]`, and returns as many, all of
        one shape and dtype. It may change its argument. It is called once with zeros, to learn
        the shape. State that it keeps between calls is not saved with the player. Around an
        `RLEnvironment`, it takes and returns the state of that, whatever it is.
    """

    def __init__(
        self, player: Union[Player, envbase.RLEnvironment], func: Callable[[np.ndarray], np.ndarray]
    ):
        super().__init__(player)
        self.func = func
        if hasattr(player, "num_envs"):
            frames = np.zeros((self.num_envs,) + tuple(self.frame_shape), self.frame_dtype)
            frames = self._map(frames)
            self.frame_shape, self.frame_dtype = frames.shape[1:], frames.dtype

    def current_state(self) -> Any:
        return self.func(super().current_state())

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        return self._map(super()._reset(seed))

    def _step(self, actions: np.ndarray) -> PlayerStep:
        step = super()._step(actions)
        return step._replace(frames=self._map(step.frames))

    def _map(self, frames: np.ndarray) -> np.ndarray:
        mapped = np.asarray(self.func(frames))
        if mapped.shape[:1] != (self.num_envs,):
            raise ValueError(
                f"The function of MapPlayerState returned shape {mapped.shape} for the frames of "
                f"{self.num_envs} environments; keep the first axis."
            )
        return mapped
