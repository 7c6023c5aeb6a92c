"""Makes the modules of the examples importable, as where they run as scripts."""

import sys
from pathlib import Path

import pytest

from tests.harness import Zygote

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "DeepQNetwork"

for folder in sorted({str(path.parent) for path in EXAMPLES.glob("*/*.py")}):
    if folder not in sys.path:
        sys.path.insert(0, folder)


@pytest.fixture(scope="session")
def start():
    """Starts a script with its arguments, in a copy of a process with TensorFlow."""
    with Zygote() as zygote:
        yield lambda script, *args: zygote.run(script.parent, script, *args)
