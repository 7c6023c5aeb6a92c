"""Bins of one width, in one dimension and several."""

import math

import numpy as np
import pytest

from tensorpack.utils.of_2017.discretize import UniformDiscretizer1D, UniformDiscretizerND


def test_the_bin_of_a_value(capsys):
    bins = UniformDiscretizer1D(-1, 1, 0.25)
    values = [-1, -0.76, -0.75, -0.13, 0, 0.99, 1]
    assert [bins.get_bin(value) for value in values] == [0, 0, 1, 3, 4, 7, 7]
    assert bins.get_bin_center(3) == -0.125
    assert bins.get_nr_bin() == 8
    assert UniformDiscretizer1D(0, 2.1, 0.3).get_nr_bin() == 7
    assert UniformDiscretizer1D(0, 1, 0.3).get_nr_bin() == 4
    assert capsys.readouterr().out == ""
    assert [bins.get_bin(value) for value in (-5, -math.inf, 40, math.inf)] == [0, 0, 7, 7]
    lines = capsys.readouterr().out.splitlines()
    assert ["less than -1.0" in line for line in lines] == [True, False]
    assert "greater than 1.0" in lines[1]


@pytest.mark.parametrize("value, peak", [(0.0, 4), (0.9, 7), (-0.99, 0)])
def test_a_distribution_falls_by_the_factor_from_bin_to_bin(value, peak):
    found = UniformDiscretizer1D(-1, 1, 0.25).get_distribution(value)
    expected = np.zeros(12)
    expected[peak : peak + 5] = [0.0025, 0.05, 1, 0.05, 0.0025]
    expected = expected[2:10] / expected[2:10].sum()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("value, peak", [(-1, 0), (1, 7)])
def test_at_the_ends_one_bin_has_all(value, peak):
    found = UniformDiscretizer1D(-1, 1, 0.25).get_distribution(value)
    assert found.tolist() == [float(number == peak) for number in range(8)]


def test_several_dimensions():
    bins = UniformDiscretizerND((0, 1, 0.25), (0, 2, 1.0), (-1, 1, 0.5))
    assert (bins.get_nr_bin(), bins.get_nr_bin_nd()) == (32, [4, 2, 4])
    assert bins.get_bin([0.3, 1.2, -0.2]) == 13
    assert bins.get_nd_bin_ids(13) == [1, 1, 1]
    assert bins.get_bin_center(13) == [0.375, 1.5, -0.25]
    assert [bins.get_bin(bins.get_bin_center(number)) for number in range(32)] == list(range(32))
