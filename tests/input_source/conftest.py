"""Catches what is logged while a test runs."""

import logging

import pytest


class _Messages(logging.Handler):
    def __init__(self, messages):
        super().__init__()
        self._messages = messages

    def emit(self, record):
        self._messages.append(record.getMessage())


@pytest.fixture
def logged():
    """The messages of the library's logger, as a list that grows."""
    messages = []
    handler = _Messages(messages)
    library = logging.getLogger("tensorpack")
    library.addHandler(handler)
    yield messages
    library.removeHandler(handler)
