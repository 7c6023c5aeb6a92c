"""How the tests of this package run their cases."""

import pytest

from tests.harness import Zygote

from .run_case import Run


@pytest.fixture(scope="session")
def zygote():
    """The process whose copies run the cases."""
    with Zygote() as process:
        yield process


@pytest.fixture
def start(zygote, tmp_path):
    """Starts a case, as `Run`; by default in the directory of the test."""

    def start(case, directory=tmp_path, **options):
        return Run(case, directory, zygote, **options)

    return start


@pytest.fixture
def run(start, tmp_path):
    """Runs a case to its end and checks it; returns the child."""

    def run(case, directory=tmp_path, **options):
        with start(case, directory, **options) as running:
            return running.end()

    return run
