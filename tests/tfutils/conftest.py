"""Fixtures for the tests of tfutils."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger


@pytest.fixture
def log_lines(monkeypatch):
    """The messages that are logged during the test, as (level, text)."""
    lines = []
    for level in ["info", "detail", "warn", "warning", "error"]:
        kind = {"warning": "warn"}.get(level, level)

        def log(text, kind=kind):
            lines.append((kind, text))

        monkeypatch.setattr(logger, level, log)
    return lines


@pytest.fixture
def session():
    """Opens a session on the default graph when called, with all variables initialised."""
    opened = []

    def open_session():
        opened.append(tf.Session())
        opened[-1].run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return opened[-1]

    yield open_session
    for each in opened:
        each.close()
