"""Players around players: limits on the length of games, a way out of a standstill, mapped frames.

Each wrapper takes any `Player` and is one itself. Closing the wrapper closes the wrapped player.
`ProxyPlayer` and `MapPlayerState` also take an `RLEnvironment` of 2017, and are one then.
"""

from typing import Any, Callable, Dict, Optional, Union

import numpy as np

from tensorpack.utils.checks import as_count

from . import envbase
from .player import EpisodeTracker, Player, PlayerStep


class ProxyPlayer(Player, envbase.ProxyPlayer):
    """Passes every call on to another player; the base of wrappers, which override a part.

    Around an `RLEnvironment` it has the methods of that, `action` and so on, and those of `Player`
    raise a TypeError; around a `Player` the other way round.
    """

    def __init__(self, player: Union[Player, envbase.RLEnvironment]):
        self.player: Any = player
        if envbase.is_environment(player):
            return
        self.num_envs = player.num_envs
        self.num_actions = player.num_actions
        self.frame_shape = player.frame_shape
        self.frame_dtype = player.frame_dtype

    def _check_open(self) -> None:
        if envbase.is_environment(self.player):
            raise TypeError(
                f"{type(self).__name__} wraps a {type(self.player).__name__}, an RLEnvironment of "
                "one game: call current_state(), action(act) and restart_episode()."
            )
        super()._check_open()

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

    _counts_all = True  # actions; or only those in a row that `_overdue` counts

    def __init__(self, player: Player, limit: int):
        _refuse_environment(player, type(self).__name__, "LimitLengthPlayer")
        super().__init__(player)
        self._no_lives = np.zeros(self.num_envs, dtype=np.int64)  # the wrapped player counts them
        self._limit = as_count(self, "limit", limit)
        self._tracker = EpisodeTracker(self.num_envs, self._limit if self._counts_all else None)

    def _overdue(self, step: PlayerStep) -> np.ndarray:
        return np.zeros(self.num_envs, dtype=bool)

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        self._tracker.begin(self._no_lives)
        return super()._reset(seed)

    def _step(self, actions: np.ndarray) -> PlayerStep:
        step = super()._step(actions)
        self._tracker.ended = step.reset
        truncated = step.truncated | self._overdue(step)
        limited = self._tracker.record(
            step.frames, step.reward, step.terminated, self._no_lives, truncated
        )
        cut = limited.truncated & ~step.truncated
        if not cut.any():
            return step
        self.player.truncate(cut)
        return limited._replace(life_lost=step.life_lost & ~cut, taken=step.taken)

    def _state_dict(self) -> Dict[str, Any]:
        return {**super()._state_dict(), **self._tracker.state_dict()}

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        super()._load_state_dict(state)
        self._tracker.load_state_dict(state)


class LimitIdle(LimitLength):
    """Truncates every game that stands still: whose frame and score have not changed for so long.

    An agent that never presses the start button would wait until another limit. `limit` is a number
    of actions in a row; the rest is as in `LimitLength`.
    """

    _counts_all = False

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        self._idle = np.zeros(self.num_envs, dtype=np.int64)  # actions without a change
        self._frames = super()._reset(seed).copy()
        return self._frames.copy()

    def _overdue(self, step: PlayerStep) -> np.ndarray:
        changed = (step.frames != self._frames).reshape(self.num_envs, -1).any(1)
        self._idle = np.where(changed | step.reset | (step.reward != 0), 0, self._idle + 1)
        self._frames = step.frames.copy()
        return self._idle >= self._limit

    def _state_dict(self) -> Dict[str, Any]:
        return {**super()._state_dict(), "idle": self._idle.copy(), "frames": self._frames.copy()}

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        super()._load_state_dict(state)
        self._idle, self._frames = np.array(state["idle"]), np.array(state["frames"])


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
        _refuse_environment(player, "PreventStuck", "PreventStuckPlayer")
        super().__init__(player)
        self._num_repeat = as_count(self, "num_repeat", num_repeat)
        self._action = as_count(self, "action", action, 0)
        if not 0 <= self._action < self.num_actions:
            raise ValueError(
                f"PreventStuck got action={action}, but the player has {self.num_actions} actions; "
                f"give one of 0 to {self.num_actions - 1}."
            )
        self._forget()

    def _forget(self) -> None:
        self._last = np.full(self.num_envs, -1, dtype=np.int64)
        self._repeats = np.zeros(self.num_envs, dtype=np.int64)

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        self._forget()
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
        if envbase.is_environment(player):
            return
        sample = self._map(np.zeros((self.num_envs,) + tuple(self.frame_shape), self.frame_dtype))
        self.frame_shape = sample.shape[1:]
        self.frame_dtype = sample.dtype

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


def _refuse_environment(player: Any, wrapper: str, other: str) -> None:
    if envbase.is_environment(player):
        raise TypeError(
            f"{wrapper} takes a Player of N environments, got a {type(player).__name__}, which is "
            f"an RLEnvironment of one game; use {other}."
        )
