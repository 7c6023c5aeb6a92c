"""Arguments are what the code behind them can use; otherwise the error names what is wrong."""

from fractions import Fraction

import numpy as np
import pytest

from tensorpack.utils.checks import (
    as_count,
    as_list,
    as_names,
    as_number,
    as_positive,
    as_range,
    check_kind,
)


class DataFlow:
    """Goes by its name in errors."""


@pytest.mark.parametrize(
    "value", [3, 3.0, "3", np.int64(3), np.float32(3), np.array(3), Fraction(6, 2)]
)
def test_counts_are_returned_as_int(value):
    count = as_count("what", "num", value)
    assert (count, type(count)) == (3, int)


@pytest.mark.parametrize("value", [0, -1, 2.9, float("inf"), float("nan"), Fraction(5, 2)])
def test_counts_that_are_not_whole_or_too_small(value):
    with pytest.raises(ValueError) as error:
        as_count(DataFlow(), "num", value)
    got = f"but got {value!r}."
    assert str(error.value) == f"DataFlow: num must be a whole number of at least 1, {got}"


def test_counts_from_zero_on_and_beyond_a_float():
    assert as_count("what", "num", 0.0, least=0) == 0
    assert as_count("what", "num", np.bool_(True)) == 1
    assert as_count("what", "num", 2**70) == as_count("what", "num", str(2**70)) == 2**70


@pytest.mark.parametrize("as_what", [as_count, as_number, as_positive])
@pytest.mark.parametrize("value", ["two", None, [2], 2j])
def test_what_is_not_a_number(as_what, value):
    with pytest.raises(TypeError, match="what: num must be a number, but got "):
        as_what("what", "num", value)


def test_numbers_in_a_range():
    assert as_positive("what", "num", np.float32(0.5)) == 0.5
    assert [as_number("what", "p", value, 0, 1) for value in (0, 1, 0.5)] == [0, 1, 0.5]
    for value in -0.1, 1.1, float("nan"):
        with pytest.raises(ValueError, match="a finite number of at least 0 and of at most 1, but"):
            as_number("what", "p", value, 0, 1)
    for value in 0, -1, float("inf"), 10**400, float("nan"):
        with pytest.raises(ValueError, match="what: num must be a positive, finite number, but"):
            as_positive("what", "num", value)
        with pytest.raises(ValueError, match="must be a finite number of at most -2, but got"):
            as_number("what", "num", value, most=-2)


def test_objects_of_a_class():
    owner = DataFlow()
    assert check_kind("ds", owner, DataFlow) is owner
    with pytest.raises(TypeError, match=r"^ds must be a DataFlow, such as X, got int\.$"):
        check_kind("ds", 3, DataFlow, ", such as X")
    with pytest.raises(TypeError, match="got the class DataFlow. Create an instance: DataFlow"):
        check_kind("ds", DataFlow, DataFlow)


def test_a_string_is_not_split_into_letters():
    assert as_list("what", "members", (each for each in (1, "ab"))) == [1, "ab"]
    for value in "cost", b"cost", 3, None:
        with pytest.raises(TypeError) as error:
            as_list("what", "members", value)
        assert str(error.value) == f"what: members must be a list, but got {value!r}."
    assert as_names("what", "names", "cost") == ["cost"]
    assert as_names("what", "names", ("cost", "error")) == ["cost", "error"]
    with pytest.raises(TypeError, match="what: names must be a list of names, but has 3"):
        as_names("what", "names", ["cost", 3])


def test_ranges():
    assert as_range("what", "range", [1, np.float32(2)]) == (1.0, 2.0)
    assert as_range("what", "range", np.array([3, 3]), 0) == (3.0, 3.0)
    for wrong in [(2, 1), (1,), (1, 2, 3), ()]:
        with pytest.raises(ValueError, match=r"what: range must be two numbers, the smaller one"):
            as_range("what", "range", wrong)
    with pytest.raises(ValueError, match="of at least 0, but got -1"):
        as_range("what", "range", (-1, 1), 0)
    for wrong in [3, "ab"]:
        with pytest.raises(TypeError, match="what: range must be a list"):
            as_range("what", "range", wrong)
