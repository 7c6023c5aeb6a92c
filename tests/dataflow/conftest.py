"""Fixtures that the tests of several modules share."""

import pytest

from tensorpack.utils.rng import _streams


@pytest.fixture
def own_streams():
    """Leaves the random streams of other tests alone."""
    before = dict(vars(_streams))
    yield
    vars(_streams).update(before)
