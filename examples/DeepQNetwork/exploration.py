"""Which environments act at random, and how: epsilon-greedily, or with actions that are repeated.

A random action that is repeated n times takes an agent where n independent ones, which undo each
other, do not: across the road of Freeway, for example, which has no reward before. The repetitions
have lengths of `P(n) ~ n^-2`, as those of animals that search.

Reference: Dabney et al., "Temporally-Extended epsilon-Greedy Exploration", 2021. There epsilon is
the probability that a repetition begins, here the share of actions that are random, so that
schedules mean the same with and without repetitions.
"""

from typing import Any, Dict, Tuple

import numpy as np

__all__ = ["RandomActions"]


class RandomActions:
    """Random actions in N environments.

    Args:
      num_envs: how many environments there are.
      num_actions: how many actions.
      rng: the random stream; not saved with the state.
      repeat: how often a random action is done in succession, at most; 1 draws a new one each time.
    """

    def __init__(
        self, num_envs: int, num_actions: int, rng: np.random.RandomState, repeat: int = 1
    ) -> None:
        self._num_actions = num_actions
        self._rng = rng
        weights = np.arange(1, repeat + 1, dtype=float) ** -2
        self._up_to = np.cumsum(weights / weights.sum())  # P(length <= 1), P(length <= 2), ...
        self._mean = float(np.arange(1, repeat + 1) @ weights / weights.sum())
        self._actions = np.zeros(num_envs, np.int64)  # those that are repeated
        self._left = np.zeros(num_envs, np.int64)  # how many times more

    def draw(self, epsilon: float) -> Tuple[np.ndarray, np.ndarray]:
        """Draws the next action of each environment.

        Args:
          epsilon: which share of the actions is random, in the long run.

        Returns:
          random actions, int64 `[N]`, and bool `[N]`: True where they are to be taken.
        """
        count = len(self._left)
        actions = self._rng.randint(self._num_actions, size=count).astype(np.int64)
        begins = self._rng.random_sample(count) < self._begin_probability(epsilon)
        begins &= self._left == 0
        self._actions[begins] = actions[begins]
        self._left[begins] = self._lengths(int(np.count_nonzero(begins)))
        chosen = self._left > 0
        self._left[chosen] -= 1
        return self._actions.copy(), chosen

    def end(self, environments: np.ndarray) -> None:
        """Ends the repetitions that are under way in some environments, a bool mask `[N]`."""
        self._left[environments] = 0

    def _begin_probability(self, epsilon: float) -> float:
        # Between two repetitions there are (1 - p) / p other actions on the average.
        return epsilon / (self._mean * (1 - epsilon) + epsilon)

    def _lengths(self, count: int) -> Any:
        if len(self._up_to) == 1:
            return 1
        drawn = np.searchsorted(self._up_to, self._rng.random_sample(count), "right")
        return np.minimum(drawn, len(self._up_to) - 1) + 1  # the last sum may be less than 1

    def state_dict(self) -> Dict[str, Any]:
        """Returns the repetitions that are under way."""
        return {"actions": self._actions.copy(), "left": self._left.copy()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned; repetitions end early where fewer are allowed."""
        self._actions[:] = state["actions"]
        self._left[:] = np.minimum(state["left"], len(self._up_to) - 1)
