"""Chooses actions for many environments at once: by chance, or by what the network says."""

from typing import Any, Callable, Dict, Sequence

import numpy as np

from tensorpack.RL import FrameHistory, Player, epsilon_greedy
from tensorpack.utils.rng import rng_state, set_rng_state

__all__ = ["Agent"]


class Agent:
    """An epsilon-greedy player of N environments, which remembers the last frames of each.

    ::

        agent.observe(player.reset(), starts=np.ones(n, bool))
        repeat:
            step = player.step(agent.act(epsilon))
            agent.observe(step.frames, starts=step.reset)

    Args:
      predict: a predictor: takes `[M, *frame_shape, history]`, the newest frame last, and returns a
        list with the values of the actions, `[M, num_actions]`.
      player: what it plays; only its attributes are looked at.
      history: frames that make one state; those before the start of an episode are black.
      rng: for what is left to chance.
    """

    def __init__(
        self,
        predict: Callable[..., Sequence[Any]],
        player: Player,
        history: int,
        rng: np.random.RandomState,
    ) -> None:
        self._predict = predict
        self._num_envs = player.num_envs
        self._num_actions = player.num_actions
        dtype = np.dtype(player.frame_dtype).type
        self._history = FrameHistory(player.num_envs, player.frame_shape, history, dtype)
        self._rng = rng

    def observe(self, frames: np.ndarray, starts: np.ndarray) -> None:
        """Takes the next frame of each environment.

        Args:
          frames: `[N, *frame_shape]`.
          starts: bool `[N]`, True where an episode begins: what was seen before is forgotten.
        """
        self._history.push(frames, starts)

    def act(self, epsilon: float) -> np.ndarray:
        """Returns an action for each environment, int64 `[N]`.

        The network is asked, in one call, only about those that do not act by chance.

        Args:
          epsilon: probability of an action by chance.
        """
        count = self._num_envs
        actions = self._rng.randint(self._num_actions, size=count).astype(np.int64)
        greedy = self._rng.random_sample(count) >= epsilon
        if greedy.any():
            states = self._history.states(None if greedy.all() else greedy)
            actions[greedy] = epsilon_greedy(self._predict(states)[0], 0.0, self._rng)
        return actions

    def state_dict(self) -> Dict[str, Any]:
        """Returns what was seen, and where the random stream is."""
        return {"history": self._history.state_dict(), "rng": rng_state(self._rng)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Takes back what `state_dict` returned.

        Raises:
          ValueError: the state is of other frames, or of another number of environments.
        """
        self._history.load_state_dict(state["history"])
        set_rng_state(self._rng, state["rng"])
