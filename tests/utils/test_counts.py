"""A count is an integer of any kind, and nothing else; what is wrong is named."""

import numpy as np
import pytest

from tensorpack.utils.counts import check_counts, check_integers, check_sizes


class DataFlow:
    """Goes by its name in errors."""


@pytest.mark.parametrize("number", [1, 2**70, np.int64(3), np.uint8(1), np.array(5)])
def test_integers_of_every_kind(number):
    check_counts(DataFlow(), num=number)
    check_integers("what", num=number, other=-1)
    check_counts("what", least=-1, num=0, other=number)


@pytest.mark.parametrize("number", [None, "2", b"2", [2], 2j, True, np.bool_(True), float("inf")])
def test_what_is_no_integer(number):
    for check in check_integers, check_counts:
        with pytest.raises(TypeError) as error:
            check(DataFlow(), good=1, num=number)
        assert str(error.value) == f"DataFlow: num must be an integer, but got {number!r}."


@pytest.mark.parametrize("number", [2.0, 2.5, np.float32(3)])
def test_the_result_of_a_division(number):
    with pytest.raises(TypeError, match="num must be an integer, but got .* Divide with // inst"):
        check_counts("what", num=number)


def test_numbers_that_are_too_small():
    with pytest.raises(ValueError, match=r"^what: num must be at least 1, but got 0\.$"):
        check_counts("what", num=0)
    with pytest.raises(ValueError, match=r"^DataFlow: num must be at least 0, but got -1\.$"):
        check_counts(DataFlow(), least=0, good=0, num=np.int64(-1))


def test_sizes():
    check_sizes("what", one=1, many=1e9, of_numpy=np.int64(7))
    for wrong, kind in (0, ValueError), (float("nan"), ValueError), (None, TypeError):
        with pytest.raises(kind, match=f"what: room is a size, but got {wrong}. Give a number of"):
            check_sizes("what", room=wrong)
