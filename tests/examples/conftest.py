"""Makes the modules of the DeepQNetwork example importable, as where it runs as a script."""

import sys
from pathlib import Path

import pytest

from tensorpack.utils import logger

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "DeepQNetwork"

if str(EXAMPLE) not in sys.path:
    sys.path.insert(0, str(EXAMPLE))


@pytest.fixture
def lines(monkeypatch):
    """What is logged as information."""
    logged = []
    monkeypatch.setattr(logger, "info", logged.append)
    return logged
