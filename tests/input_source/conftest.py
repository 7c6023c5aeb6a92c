"""Catches what is logged while a test runs."""

import logging

import pytest


@pytest.fixture
def logged():
    """The messages of the library's logger, as a list that grows."""
    messages, handler = [], logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    library = logging.getLogger("tensorpack")
    library.addHandler(handler)
    yield messages
    library.removeHandler(handler)
