"""Scores are counted in the time in which their games ended."""

import numpy as np
from r16_score_per_hour import means_by_time

from tensorpack.RL import RunScores


def test_games_count_in_the_time_in_which_they_ended():
    # 100 steps in the first hour, 300 in the next two
    epochs = [{"agent_steps": 100, "hours": 1.0}, {"agent_steps": 400, "hours": 3.0}]
    steps, scores = np.array([10, 49, 51, 100, 249, 399]), np.array([1.0, 2, 3, 4, 5, 6])
    means = means_by_time(RunScores("nowhere", epochs, steps, scores), hours=0.5)
    np.testing.assert_allclose(means, [1.5, 3, 4, 5, np.nan, 6])
