"""Leaves most cases of a costly test to the slow tier of one row."""

import pytest

__all__ = ["first_fast"]


def first_fast(cases, count=1):
    """Returns the cases as parameters; all but the first `count` are slow, and for one row."""
    cases = list(cases)
    rest = [each if isinstance(each, tuple) else (each,) for each in cases[count:]]
    marks = [pytest.mark.slow, pytest.mark.one_row]
    return [*cases[:count], *(pytest.param(*each, marks=marks) for each in rest)]
