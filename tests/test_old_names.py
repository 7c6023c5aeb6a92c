"""Names are found in the modules from which scripts of 2017 and of 2018 to 2023 (0.11) import them.

`old_names.txt` has a line for each module; a name with a minus is not there, see
docs/design/differences.md. What has no counterpart yet (images, most datasets) is not listed.
"""

import importlib
from pathlib import Path

import pytest

from tests.conftest import HAS_TENSORFLOW

LINES = Path(__file__).with_name("old_names.txt").read_text(encoding="utf-8").splitlines()
WITHOUT_TENSORFLOW = ("tensorpack.utils.", "tensorpack.dataflow.", "tensorpack.RL.")


@pytest.mark.parametrize("line", LINES, ids=lambda line: ":".join(line.split()[:2]))
def test_names_of_old_modules(line):
    _, name, *expected = line.split()
    if not HAS_TENSORFLOW and not name.startswith(WITHOUT_TENSORFLOW):
        pytest.skip("needs TensorFlow")
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        assert name.startswith(error.name)
        module = None
    found = [each.lstrip("-") for each in expected]
    assert [each if hasattr(module, each) else f"-{each}" for each in found] == expected
