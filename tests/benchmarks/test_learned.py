"""Scores are counted in the time in which their games ended."""

import numpy as np
from _programs import example
from learned import means_by_time


def test_games_count_in_the_time_in_which_they_ended():
    example("DeepQNetwork")
    from scores import Run

    # 100 steps in the first hour, 300 in the next two
    epochs = [{"agent_steps": 100, "hours": 1.0}, {"agent_steps": 400, "hours": 3.0}]
    steps, scores = np.array([10, 49, 51, 100, 249, 399]), np.array([1.0, 2, 3, 4, 5, 6])
    means = means_by_time(Run("nowhere", epochs, steps, scores), hours=0.5)
    np.testing.assert_allclose(means, [1.5, 3, 4, 5, np.nan, 6])
