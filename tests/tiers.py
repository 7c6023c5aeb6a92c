"""Leaves most cases of a costly test to the slow tier."""

import pytest

__all__ = ["first_fast"]


def first_fast(cases, count=1):
    """Returns the cases as parameters; all but the first `count` are slow."""
    cases = list(cases)
    rest = [each if isinstance(each, tuple) else (each,) for each in cases[count:]]
    return [*cases[:count], *(pytest.param(*each, marks=pytest.mark.slow) for each in rest)]
