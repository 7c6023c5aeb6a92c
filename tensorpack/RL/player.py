"""The contract of N environments stepped together, and a helper to keep it."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from tensorpack.utils.checks import as_count_or_none

_COUNTS = {"ended": np.bool_, "lengths": np.int64, "scores": np.float64, "lives": np.int64}


class PlayerStep(NamedTuple):
    """The result of one step of N environments. Its arrays belong to the caller.

    Attributes:
      frames: `[N, *frame_shape]`, the observation after the action. Where a game ended, its last
        observation; where `reset`, the first of a new game.
      reward: float32 `[N]`, raw (not clipped); 0 where `reset`.
      terminated: bool `[N]`, the game is over by its own rules.
      truncated: bool `[N]`, the game was cut off from outside, such as by a limit on its length.
        Never together with `terminated`.
      life_lost: bool `[N]`, a life was lost and the game continues.
      reset: bool `[N]`, this environment ignored its action and began a new game: this is not a
        transition, so do not store it.
      episode_score: float64 `[N]`, the sum of rewards of the whole game where one ended in this
        step, NaN elsewhere.
      taken: int64 `[N]`, the actions that were taken, where the player or a wrapper may replace
        those that it was asked for: store these. None if it never does.
    """

    frames: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    life_lost: np.ndarray
    reset: np.ndarray
    episode_score: np.ndarray
    taken: Optional[np.ndarray] = None


class Player:
    """N environments with the same discrete actions, stepped together. Use them like this::

        with make_player() as player:
            frames = player.reset()              # N first observations
            repeat:
                actions = choose(frames)         # int [N]
                step = player.step(actions)
                store(frames, actions, step)     # but not where step.reset
                frames = step.frames

    Calls out of order, such as a step before `reset()` or after `close()`, raise RuntimeError.
    Environments do not wait for each other. Where a game ended in step k (`terminated` or
    `truncated`), step k+1 ignores that environment's action, begins a new game and returns its
    first observation with `reset` set; the others continue. Call `reset()` only to begin.

    Subclasses set the attributes in their constructor and override `_reset`, `_step` and, if they
    hold anything, `_close`; to be saved, `_state_dict` and `_load_state_dict`.

    Attributes:
      num_envs: how many environments.
      num_actions: actions are the integers in [0, num_actions).
      frame_shape: shape of one observation.
      frame_dtype: numpy dtype of an observation.
    """

    num_envs: int
    num_actions: int
    frame_shape: Tuple[int, ...]
    frame_dtype: np.dtype = np.dtype(np.uint8)

    _started = False
    _closed = False

    def reset(self, seed: Optional[int] = None) -> np.ndarray:
        """Begins a new game everywhere, and returns the first observations `[N, *frame_shape]`.

        A seed makes all that follows reproducible; None keeps the current random streams.
        """
        self._check_open()
        frames = self._reset(seed)
        self._started = True
        return frames

    def step(self, actions: np.ndarray) -> PlayerStep:
        """Plays one action, of integers `[N]`, in each environment, but where a game just ended."""
        self._check_started()
        return self._step(self._check_actions(actions))

    def truncate(self, mask: np.ndarray) -> None:
        """Cuts off the games of a bool mask `[N]`: the next step begins new ones there.

        RuntimeError if these environments cannot do it.
        """
        self._check_started()
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.num_envs,):
            raise ValueError(f"The mask must have shape ({self.num_envs},), got {mask.shape}.")
        self._truncate(mask)

    @property
    def identity(self) -> Dict[str, Any]:
        """Identifies the game, as numbers and strings; {} if unknown.

        Do not mix transitions of players with different identities.
        """
        return {}

    @property
    def can_save(self) -> bool:
        """True if `state_dict` and `load_state_dict` work with these environments."""
        return not self._save_obstacle()

    def state_dict(self) -> Dict[str, Any]:
        """Returns all that the next steps depend on: numbers, strings, bytes and arrays.

        RuntimeError unless `can_save`.
        """
        self._check_started()
        self._check_can_save()
        return {**self._kind(), "inside": self._state_dict()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continues from a state; no `reset()` is needed. RuntimeError unless `can_save`.

        ValueError if the state is of another kind of player, or cannot be restored here: call
        `reset()` to begin new games.
        """
        self._check_open()
        self._check_can_save()
        kind = self._kind()
        saved = {name: state.get(name) for name in kind}
        if saved != kind:
            raise ValueError(f"The state is of a player with {saved}, this player has {kind}.")
        self._load_state_dict(state["inside"])
        self._started = True

    def close(self) -> None:
        """Releases the environments; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._close()

    def __enter__(self) -> "Player":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    def _reset(self, seed: Optional[int]) -> np.ndarray:
        raise NotImplementedError

    def _step(self, actions: np.ndarray) -> PlayerStep:
        raise NotImplementedError

    def _truncate(self, mask: np.ndarray) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot end a game from outside.")

    def _state_dict(self) -> Dict[str, Any]:
        raise NotImplementedError

    def _load_state_dict(self, state: Dict[str, Any]) -> None:
        raise NotImplementedError

    def _save_obstacle(self) -> str:
        """Returns why the state cannot be saved; "" if it can be."""
        return "it has no _state_dict" if type(self)._state_dict is Player._state_dict else ""

    def _close(self) -> None:
        pass

    def _kind(self) -> Dict[str, Any]:
        return {"kind": type(self).__name__, "num_envs": self.num_envs}

    def _check_can_save(self) -> None:
        obstacle = self._save_obstacle()
        if obstacle:
            raise RuntimeError(
                f"{type(self).__name__} cannot save its state or restore one: {obstacle}."
            )

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"This {type(self).__name__} is closed; make a new one.")

    def _check_started(self) -> None:
        self._check_open()
        if not self._started:
            raise RuntimeError(f"Call reset() of this {type(self).__name__} first.")

    def _check_actions(self, actions: np.ndarray) -> np.ndarray:
        actions = np.asarray(actions)
        whole = actions.astype(np.int64)
        fits = actions.shape == (self.num_envs,) and (whole == actions).all()
        if not fits or whole.min() < 0 or whole.max() >= self.num_actions:
            raise ValueError(
                f"Actions are integers in [0, {self.num_actions}), one for each of {self.num_envs} "
                f"environments, got {actions.tolist()}."
            )
        return whole


class EpisodeTracker:
    """Turns what N environments report into steps of the `Player` contract.

    A game is truncated after `max_actions`; None for no limit. `ended`, bool `[N]`, is True where
    the next step begins a new game.
    """

    def __init__(self, num_envs: int, max_actions: Optional[int] = None):
        limit = "the limit of actions in a game"
        self._max_actions = as_count_or_none("Player", limit, max_actions)
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
