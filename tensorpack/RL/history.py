"""What an agent acts by: the last frames of each environment, and epsilon-greedy actions."""

from collections import deque
from typing import Any, Deque, Dict, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.checks import as_count, as_number

from .envbase import ProxyPlayer, RLEnvironment


class FrameHistory:
    """The last frames of N environments that are stepped together.

    It returns the state that `ReplayMemory` later samples for the same step, if episodes start at
    the same steps in both: with a new game, and after a lost life that counts as an end. States, of
    `history` frames, are built by `states`: random play does not pay for them.
    """

    def __init__(
        self,
        num_envs: int,
        frame_shape: Sequence[int],
        history: int = 4,
        frame_dtype: type = np.uint8,
    ) -> None:
        num_envs = as_count(self, "num_envs", num_envs)
        history = as_count(self, "history", history)
        shape = (num_envs,) + tuple(frame_shape) + (history,)
        self._states: np.ndarray = np.zeros(shape, frame_dtype)
        # Frames that are not in the states yet, at most `history`.
        self._pending: Deque[Tuple[np.ndarray, np.ndarray]] = deque(maxlen=history)

    def observe(self, frames: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Calls `push` with these arguments; returns what `states` does."""
        self.push(frames, starts)
        return self.states()

    def push(self, frames: np.ndarray, starts: np.ndarray) -> None:
        """Takes the next frame of each environment, and copies it.

        Args:
          frames: `[N, *frame_shape]`, of the dtype given to the constructor.
          starts: bool `[N]`, True where an episode begins with this frame; earlier ones are
            forgotten.
        """
        states = self._states
        frames = np.array(frames)
        if frames.shape != states.shape[:-1] or frames.dtype != states.dtype:
            raise ValueError(
                f"frames must be {states.dtype} {list(states.shape[:-1])}, got {frames.dtype} "
                f"{list(frames.shape)}."
            )
        self._pending.append((frames, np.array(starts, np.bool_)))

    def states(self, rows: Optional[np.ndarray] = None) -> np.ndarray:
        """Returns the states that the frames so far make, `[N, *frame_shape, history]`.

        They are of the dtype of the frames: oldest frame first, zeros from before the episode; a
        new array, which belongs to the caller. `rows`, bool `[N]` or integers, selects some.
        """
        states = self._states
        values = states.reshape(-1)
        while self._pending:
            frames, starts = self._pending.popleft()
            # One place to the left in all pixels at once, as one run of memory; what this moves
            # from each pixel into the one before it is where the new frame goes.
            values[:-1] = values[1:]
            states[starts] = 0
            states[..., -1] = frames
        return states.copy() if rows is None else states[rows]

    def state_dict(self) -> Dict[str, Any]:
        return {"states": self.states()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Takes over the frames of another history."""
        saved, states = np.array(state["states"]), self._states
        if saved.shape != states.shape or saved.dtype != states.dtype:
            raise ValueError(
                f"The saved history is {saved.dtype} {list(saved.shape)}, this one is "
                f"{states.dtype} {list(states.shape)} ([num_envs, *frame_shape, history])."
            )
        self._states = saved
        self._pending.clear()


class HistoryFramePlayer(ProxyPlayer):
    """Gives the last frames of an `RLEnvironment` of 2017 as its state.

    A state is `[H, W, hist_len * C, ...]`: frames `[H, W, C, ...]` side by side on axis 2, oldest
    first, zeros from before the game. The environment begins a new game by itself where one ends.
    """

    def __init__(self, player: RLEnvironment, hist_len: int):
        super().__init__(player)
        self._hist_len = as_count(self, "hist_len", hist_len)
        self._frames: Deque[np.ndarray] = deque(maxlen=self._hist_len)
        self._push(True)

    def current_state(self) -> np.ndarray:
        return np.concatenate(list(self._frames), axis=2)

    def action(self, act: Any) -> Tuple[float, bool]:
        reward, over = super().action(act)
        self._push(over)
        return reward, over

    def restart_episode(self) -> None:
        super().restart_episode()
        self._push(True)

    def _push(self, starts: bool) -> None:
        frame = np.array(super().current_state())
        if starts:
            self._frames.extend([np.zeros_like(frame)] * self._hist_len)
        self._frames.append(frame)


def epsilon_greedy(q_values: np.ndarray, epsilon: float, rng: np.random.RandomState) -> np.ndarray:
    """Returns the best action of each row, int64 `[N]`, or, with a probability of `epsilon`, any.

    A random action is uniform over all actions, the best one included. The number of draws from
    `rng` does not depend on the values or on `epsilon`.

    Args:
      q_values: `[N, A]`, the values of A actions in N states. The first of equal ones is best.
      epsilon: probability of an action by chance, in [0, 1], for each row on its own.
      rng: for random actions.
    """
    q_values = np.asarray(q_values)
    epsilon = as_number("epsilon_greedy", "epsilon", epsilon, least=0.0, most=1.0)
    count, num_actions = q_values.shape
    by_chance = rng.random_sample(count) < epsilon
    chance = rng.randint(num_actions, size=count, dtype=np.int64)
    return np.where(by_chance, chance, np.argmax(q_values, axis=1).astype(np.int64))
