"""Tests that classes of your own must pass; a test class inherits them, with pytest.

`dataflow`, `augmentor`, `callback` and `input_source` have a contract each; that of a player is
in `tensorpack.RL.testing`.
"""

import pytest

# Otherwise their assertions would fail without the values, and not at all under `python -O`.
pytest.register_assert_rewrite(
    *(f"{__name__}.{name}" for name in ("augmentor", "callback", "dataflow", "input_source"))
)
