"""Processes that have TensorFlow loaded already."""

import pytest

from tests.harness import Zygote


@pytest.fixture(scope="package")
def zygote():
    """Copies itself for a process of a group; see `tests.harness`."""
    with Zygote() as started:
        yield started
