"""Lets chance choose some of the actions, so that the others get to be compared with something."""

import numpy as np

__all__ = ["epsilon_greedy"]


def epsilon_greedy(q_values: np.ndarray, epsilon: float, rng: np.random.RandomState) -> np.ndarray:
    """Returns the best action of each row or, with a probability of `epsilon`, any of them.

    An action by chance is uniform over all actions, the best one included. As many numbers are
    drawn from `rng` whatever the values and `epsilon` are.

    Args:
      q_values: `[N, A]`, the values of A actions in N states. Of equal ones the first is best.
      epsilon: probability of an action by chance, in [0, 1], for each row on its own.
      rng: for what is left to chance.

    Returns:
      the actions, int64 `[N]`.

    Raises:
      ValueError: `q_values` is not a matrix with at least one column, or `epsilon` is not a
        probability.
    """
    q_values = np.asarray(q_values)
    if q_values.ndim != 2 or q_values.shape[1] == 0:
        raise ValueError(f"q_values must have the shape [N, A], got {list(q_values.shape)}.")
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon is a probability, from 0 to 1, got {epsilon}.")
    count, num_actions = q_values.shape
    by_chance = rng.random_sample(count) < epsilon
    chance = rng.randint(num_actions, size=count, dtype=np.int64)
    return np.where(by_chance, chance, np.argmax(q_values, axis=1).astype(np.int64))
