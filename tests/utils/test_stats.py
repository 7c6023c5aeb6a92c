"""Tests of `tensorpack.utils.stats`."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.utils.stats import (
    Accuracy,
    BinaryStatistics,
    OnlineMoments,
    RatioCounter,
    StatCounter,
)


def test_stat_counter():
    counter = StatCounter()
    for value in (3, 1, 2):
        counter.feed(value)
    assert (counter.count, counter.sum, counter.average) == (3, 6.0, 2.0)
    assert (counter.min, counter.max, counter.samples()) == (1.0, 3.0, [3, 1, 2])
    counter.samples().append(9)
    assert counter.count == 3
    counter.reset()
    assert counter.count == 0


@pytest.mark.parametrize("name", ["sum", "average", "max", "min"])
def test_an_empty_stat_counter_knows_only_its_count(name):
    with pytest.raises(RuntimeError, match="no value yet"):
        getattr(StatCounter(), name)


def test_results_are_numpy_scalars():
    """As scripts expect that call `np.asscalar(counter.sum)` or `counter.average.item()`."""
    counter, stat = StatCounter(), BinaryStatistics()
    counter.feed(3)
    for _ in range(2):
        results = [counter.sum, counter.average, counter.max, counter.min, stat.precision]
        results += [stat.recall, stat.false_positive, stat.false_negative]
        assert {type(value) for value in results} == {np.float64}
        assert isinstance(stat.nr_pos, np.integer)
        stat.feed([1], [1])


def test_sums_do_not_have_the_range_of_what_is_fed():
    counter, ratio = StatCounter(), RatioCounter()
    for _ in range(1000):
        counter.feed(np.float16(100))
        ratio.feed(np.uint8(200), np.uint8(250))
    assert (counter.sum, counter.average, ratio.ratio) == (100000, 100, 0.8)


@pytest.mark.parametrize("kind", [RatioCounter, Accuracy])
def test_ratio_counter(kind):
    counter = kind()
    assert counter.ratio == 0
    counter.feed(1)
    counter.feed(cnt=2, tot=5)
    assert (counter.count, counter.total, counter.ratio) == (3, 6, 0.5)
    counter.reset()
    assert (counter.count, counter.total, counter.ratio) == (0, 0, 0)


def test_accuracy():
    accuracy = Accuracy()
    accuracy.feed(3, 4)
    assert accuracy.accuracy == 0.75


def test_binary_statistics():
    stat = BinaryStatistics()
    stat.feed([1, 1, 0, 0], [1, 0, 1, 0])
    stat.feed(np.array([True, False]), np.array([True, True]))
    assert stat.precision == 2 / 3 and stat.recall == 0.5
    assert stat.false_positive == 1 - 2 / 3 and stat.false_negative == 0.5
    assert (stat.nr_pos, stat.nr_pred_pos, stat.corr_pos) == (4, 3, 2)
    assert (stat.nr_neg, stat.nr_pred_neg, stat.corr_neg) == (2, 3, 1)
    stat.reset()
    values = (stat.precision, stat.recall, stat.false_positive, stat.false_negative)
    assert values == (0, 0, 0, 0)


@pytest.mark.parametrize("pred, label", [([1], [1, 0]), ([[1]], [1]), ([2], [1]), ([1], [0.5])])
def test_binary_statistics_takes_equal_shapes_of_zeros_and_ones(pred, label):
    stat = BinaryStatistics()
    with pytest.raises(ValueError):
        stat.feed(pred, label)
    assert stat.recall == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50), st.sampled_from([0.0, 1e9]))
def test_online_moments_equal_numpy(values, offset):
    values = [value + offset for value in values]
    moments = OnlineMoments()
    for value in values:
        moments.feed(value)
    assert moments.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert moments.variance == pytest.approx(np.var(values, ddof=1), rel=1e-6, abs=1e-6)
    assert moments.std == math.sqrt(moments.variance)
