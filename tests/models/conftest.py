"""What the tests of layers find in the log."""

import pytest

from tensorpack.utils import logger


@pytest.fixture
def lines(monkeypatch):
    """Collects what is logged."""
    found = []
    monkeypatch.setattr(logger, "info", found.append)
    monkeypatch.setattr(logger, "detail", found.append)
    monkeypatch.setattr(logger, "warning", found.append)
    return found
