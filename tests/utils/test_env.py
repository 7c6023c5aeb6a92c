"""Tests of `tensorpack.utils.env`."""

import os

import pytest

from tensorpack.utils import change_env

NAME = "TENSORPACK_TEST_OF_CHANGE_ENV"


def test_it_sets_and_removes():
    with change_env(NAME, "1"):
        assert os.environ[NAME] == "1"
        with change_env(NAME, None):
            assert NAME not in os.environ
        assert os.environ[NAME] == "1"
    assert NAME not in os.environ


def test_it_restores_after_an_exception():
    with pytest.raises(KeyError):
        with change_env(NAME, "1"):
            raise KeyError
    assert NAME not in os.environ


def test_a_number_becomes_text():
    with change_env(NAME, 3):
        assert os.environ[NAME] == "3"
