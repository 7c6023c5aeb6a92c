"""What the values of the states of a rollout should have been, from the rewards that followed."""

import numpy as np


def nstep_targets(
    reward: np.ndarray,
    over: np.ndarray,
    truncated: np.ndarray,
    values: np.ndarray,
    discount: float,
) -> np.ndarray:
    """Returns what the value of each state should have been, float32 `[T, N]`.

    The discounted rewards from there to the end of the episode, or to the end of the rollout, where
    the value of the state that follows stands for the rest::

        R_t = r_t                         where nothing follows
        R_t = r_t + discount * V_{t+1}    where the game is cut off, or t = T - 1
        R_t = r_t + discount * R_{t+1}    elsewhere

    Where step t began a new game, the number has no meaning.

    Reference: Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning", 2016.

    Args:
      reward: `[T, N]`, of step t.
      over: bool `[T, N]`, True where the episode ended with step t by its own rules.
      truncated: bool `[T, N]`, True where the game was cut off after step t: V_{t+1} is then the
        value of its last frames, and step t+1 begins a new game.
      values: `[T + 1, N]`, V_t, of the states before step t; the last row is after the last step.
      discount: in [0, 1].
    """
    target = np.empty(reward.shape, np.float32)
    following = values[-1]
    for t in reversed(range(len(reward))):
        following = np.where(truncated[t], values[t + 1], following)
        # No multiplication by 0: the value after the end may be anything, NaN included.
        target[t] = following = reward[t] + discount * np.where(over[t], 0.0, following)
    return target
