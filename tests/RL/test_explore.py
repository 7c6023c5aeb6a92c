"""Actions are the best ones, or by chance, as often as epsilon says."""

import numpy as np
import pytest

from tensorpack.RL import epsilon_greedy


def rng(seed=0):
    return np.random.RandomState(seed)


def test_without_chance_the_best_action_is_taken_and_the_first_of_equal_ones():
    q_values = np.array([[0, 2, 1], [-1, -2, -3], [5, 7, 7]], np.float32)
    actions = epsilon_greedy(q_values, 0, rng())
    assert actions.tolist() == [1, 0, 1]
    assert actions.dtype == np.int64


def test_with_chance_alone_all_actions_are_alike():
    q_values = np.tile(np.arange(4.0), (40000, 1))
    counts = np.bincount(epsilon_greedy(q_values, 1, rng()), minlength=4)
    assert np.abs(counts - 10000).max() < 5 * np.sqrt(40000 * 0.25 * 0.75)


def test_epsilon_is_the_part_that_is_left_to_chance():
    q_values = np.tile(np.array([0.0, 1.0]), (40000, 1))
    best = np.count_nonzero(epsilon_greedy(q_values, 0.3, rng()))
    assert abs(best - 40000 * 0.85) < 5 * np.sqrt(40000 * 0.85 * 0.15)


def test_rows_are_decided_on_their_own():
    actions = epsilon_greedy(np.tile(np.array([0.0, 1.0]), (64, 1)), 0.5, rng())
    assert set(actions.tolist()) == {0, 1}


@pytest.mark.parametrize("epsilon", [0, 0.1, 1])
def test_as_many_numbers_are_drawn_whatever_epsilon_is(epsilon):
    one, other = rng(3), rng(3)
    epsilon_greedy(np.zeros((5, 6)), epsilon, one)
    epsilon_greedy(np.ones((5, 6)), 0.5, other)
    assert one.randint(2**31 - 1) == other.randint(2**31 - 1)


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, float("nan")])
def test_epsilon_must_be_a_probability(epsilon):
    with pytest.raises(ValueError, match="epsilon is a probability, from 0 to 1, got"):
        epsilon_greedy(np.zeros((1, 2)), epsilon, rng())


@pytest.mark.parametrize("shape", [(3,), (3, 0), (1, 2, 3)])
def test_values_must_be_a_matrix(shape):
    with pytest.raises(ValueError, match=r"q_values must have the shape \[N, A\], got"):
        epsilon_greedy(np.zeros(shape), 0, rng())
