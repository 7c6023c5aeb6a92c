"""A sum tree draws in proportion to its weights, and is exact after any number of changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.RL.sum_tree import SumTree

SIZES = [1, 2, 15, 16, 17, 255, 257, 4097]


def levels_of(tree):
    tree.total  # noqa: B018  (brings the sums up to date)
    return [level.copy() for level in tree._levels]


def assert_same(tree, other):
    for ours, theirs in zip(levels_of(tree), levels_of(other)):
        np.testing.assert_array_equal(ours, theirs)


def slow_find(weights, number):
    """Walks along the weights."""
    below = 0
    for index, weight in enumerate(weights):
        below += weight
        if number < below:
            return index


@pytest.mark.parametrize("size", SIZES)
def test_it_finds_what_a_walk_along_the_weights_finds(size):
    rng = np.random.RandomState(size)
    weights = rng.randint(9, size=size) * (rng.rand(size) < 0.5) + (np.arange(size) == size // 2)
    tree = SumTree(size)
    tree.set(np.arange(size), weights)
    assert (len(tree), tree.total) == (size, weights.sum())
    numbers = np.unique(np.concatenate([[0], np.cumsum(weights), np.cumsum(weights) - 0.5]))
    numbers = numbers[(numbers >= 0) & (numbers < weights.sum())][:300]
    assert tree.find(numbers).tolist() == [slow_find(weights, number) for number in numbers]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 600), st.integers(0, 2**31), st.lists(st.integers(1, 40), max_size=30))
def test_after_many_changes_it_is_a_new_tree_of_the_same_weights(size, seed, changes):
    rng = np.random.RandomState(seed)
    tree, weights = SumTree(size), np.zeros(size)
    for count in changes:
        where, values = (
            rng.randint(size, size=count),
            rng.rand(count) ** 9 * (rng.rand(count) < 0.8),
        )
        tree.set(where, values)
        weights[where] = values
        if rng.rand() < 0.3:
            assert tree.total == pytest.approx(weights.sum(), rel=1e-12, abs=0)
    fresh = SumTree(size)
    fresh.replace(weights)
    assert_same(tree, fresh)
    np.testing.assert_array_equal(tree[np.arange(size)], weights)
    if tree.total:
        assert (weights[tree.draw(50, rng)] > 0).all()


def test_rounding_never_leads_to_a_weight_of_zero():
    # Sums of these are rounded at every level, and numbers lie on and around their borders.
    rng = np.random.RandomState(0)
    for size in (40, 300):
        weights = np.where(rng.rand(size) < 0.3, 10.0 ** rng.uniform(-18, 3, size), 0.0)
        tree = SumTree(size)
        tree.replace(weights)
        ends = np.concatenate([np.cumsum(weights), [tree.total, 2 * tree.total]])
        numbers = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, np.inf)])
        assert (weights[tree.find(numbers)] > 0).all()


def test_each_stratum_has_one_draw():
    tree, rng = SumTree(64), np.random.RandomState(0)
    tree.replace(np.ones(64))
    for _ in range(20):
        assert tree.draw(64, rng).tolist() == list(range(64))
        assert (tree.draw(16, rng) // 4).tolist() == list(range(16))
