"""Groups of processes that have TensorFlow loaded already."""

from contextlib import ExitStack

import pytest

from tests.harness import Zygote

from .group import Group


@pytest.fixture(scope="package")
def zygote():
    """Copies itself for a process of a group; see `tests.harness`."""
    with Zygote() as started:
        yield started


@pytest.fixture
def start(zygote):
    """Starts a `Group`, which ends with the test."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(Group(zygote, *args, **options))
