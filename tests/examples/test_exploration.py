"""Random actions: their share, and how long they are repeated."""

import numpy as np
import pytest
from exploration import RandomActions

from tests.tiers import first_fast


def draw_many(repeat, epsilon, ticks=20000, seed=0):
    """Returns the actions of two environments, `[ticks, 2]`, -1 where they are not random."""
    random = RandomActions(2, 7, np.random.RandomState(seed), repeat)
    drawn = [random.draw(epsilon) for _ in range(ticks)]
    return np.array([np.where(chosen, actions, -1) for actions, chosen in drawn])


def lengths(column):
    """How long each random action of an environment was repeated; longer where two follow."""
    edges = np.flatnonzero(np.diff(column)) + 1
    return [len(run) for run in np.split(column, edges) if run[0] >= 0]


@pytest.mark.parametrize("repeat", first_fast([1, 2, 100], 2))
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


def repeating(random):
    """Draws until an action is to be repeated more than three times more; returns where."""
    while not (random._left > 3).any():
        random.draw(0.5)
    return int(np.argmax(random._left))


def test_a_repetition_ends_where_it_is_told_to():
    random = RandomActions(3, 50, np.random.RandomState(0), 100)
    where = repeating(random)
    random.end(np.arange(3) != where)
    assert random.draw(0.0)[1].tolist() == [i == where for i in range(3)]
    random.end(np.arange(3) == where)
    assert not random.draw(0.0)[1].any()


def test_a_saved_repetition_ends_where_it_is_longer_than_allowed():
    long, short, none = (RandomActions(3, 50, np.random.RandomState(0), n) for n in (100, 3, 1))
    repeating(long)
    short.load_state_dict(long.state_dict())
    assert [short.draw(0.0)[1].any() for _ in range(3)] == [True, True, False]
    none.load_state_dict(long.state_dict())
    assert not none.draw(0.0)[1].any()


def test_a_restored_state_continues_like_the_saved_one():
    first, second = (RandomActions(3, 50, np.random.RandomState(0), 100) for _ in range(2))
    repeating(first)
    second.load_state_dict(first.state_dict())
    second._rng.set_state(first._rng.get_state())
    for _ in range(20):
        for ours, theirs in zip(first.draw(0.5), second.draw(0.5)):
            np.testing.assert_array_equal(ours, theirs)
