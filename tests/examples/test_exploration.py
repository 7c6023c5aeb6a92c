"""Random actions: their share, and how long they are repeated."""

import numpy as np
import pytest
from exploration import RandomActions


def draw_many(repeat, epsilon, ticks=20000, seed=0):
    """Returns the actions of two environments, `[ticks, 2]`, -1 where they are not random."""
    random = RandomActions(2, 7, np.random.RandomState(seed), repeat)
    drawn = [random.draw(epsilon) for _ in range(ticks)]
    return np.array([np.where(chosen, actions, -1) for actions, chosen in drawn])


def lengths(column):
    """How long each random action of an environment was repeated; longer where two follow."""
    edges = np.flatnonzero(np.diff(column)) + 1
    return [len(run) for run in np.split(column, edges) if run[0] >= 0]


@pytest.mark.parametrize("repeat", [1, 2, 100])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_epsilon_is_the_share_of_random_actions(repeat, epsilon):
    actions = draw_many(repeat, epsilon)
    assert np.mean(actions >= 0) == pytest.approx(epsilon, rel=0.1)
    assert np.bincount(actions[actions >= 0]).min() > 0.8 * epsilon * 40000 / 7
    assert np.mean(actions[:, 0] == actions[:, 1]) < 1 - epsilon + epsilon**2  # independent


@pytest.mark.parametrize("repeat", [1, 100])
def test_all_or_nothing_is_random(repeat):
    assert (draw_many(repeat, 1.0, ticks=100) >= 0).all()
    assert (draw_many(repeat, 0.0, ticks=100) < 0).all()


def test_n_repetitions_come_once_in_n_squared():
    counts = np.bincount(lengths(draw_many(3, 0.1)[:, 0]), minlength=4)[1:4]
    shares = counts / counts.sum()
    assert shares == pytest.approx(np.array([36, 9, 4]) / 49, rel=0.2)


def test_it_goes_on_where_it_was_saved():
    first, second = (RandomActions(3, 50, np.random.RandomState(0), 100) for _ in range(2))
    while not (first._left > 3).any():
        first.draw(0.5)
    second.load_state_dict(first.state_dict())
    second._rng.set_state(first._rng.get_state())
    for _ in range(20):
        for ours, theirs in zip(first.draw(0.5), second.draw(0.5)):
            np.testing.assert_array_equal(ours, theirs)
