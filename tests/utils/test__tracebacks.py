"""What is printed of an error: the frames of the user."""

import sys
import traceback

import pytest

from tensorpack.utils import _tracebacks
from tensorpack.utils._tracebacks import is_of_user, shorten_uncaught, traceback_text
from tensorpack.utils.argtools import call_only_once
from tensorpack.utils.checks import as_count


class Program:
    """Calls this package, which calls it back."""

    def __init__(self, action):
        self.action = action

    @call_only_once
    def run(self):
        self.action()


def caught(action):
    with pytest.raises(Exception) as info:
        Program(action).run()
    return info.value


def divide():
    raise ZeroDivisionError("the user's own")


def test_frames_of_this_package_are_hidden_and_the_error_is_whole():
    error = caught(divide)
    before = traceback.extract_tb(error.__traceback__)
    text = traceback_text(error)
    assert "argtools.py" not in text and "in divide" in text and "in caught" in text
    assert text.splitlines()[-2:] == [
        "  (1 frame of tensorpack and TensorFlow is not shown: TENSORPACK_FULL_TRACEBACK=1 shows "
        "it.)",
        "ZeroDivisionError: the user's own",
    ]
    assert list(traceback.extract_tb(error.__traceback__)) == list(before)
    full = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert traceback_text(error, full=True) == full and "argtools.py" in full


def test_an_error_of_this_package_ends_at_the_line_that_called_it():
    text = traceback_text(caught(lambda: as_count("Thing", "number", 0)))
    assert "checks.py" not in text and 'as_count("Thing", "number", 0)' in text
    assert "ValueError: Thing: number must be" in text


def test_causes_and_contexts_stay():
    def fail():
        try:
            divide()
        except ZeroDivisionError as error:
            raise KeyError("above") from error

    text = traceback_text(caught(fail))
    assert text.index("ZeroDivisionError: the user's own") < text.index("direct cause")
    assert text.index("direct cause") < text.index("KeyError: 'above'")


def test_a_cause_within_this_package_keeps_its_last_frame():
    def fail():
        try:
            as_count("Thing", "number", 0)
        except ValueError as error:
            while error.__traceback__.tb_next is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise KeyError("above") from error

    text = traceback_text(caught(fail))
    assert text.count("Traceback (most recent call last)") == 2
    assert text.count("checks.py") == 1


def test_an_error_without_a_frame_of_the_user_is_shown_with_all():
    error = caught(lambda: as_count("Thing", "number", 0))
    while error.__traceback__.tb_next is not None:
        error.__traceback__ = error.__traceback__.tb_next
    text = traceback_text(error)
    assert "checks.py" in text and "not shown" not in text


@pytest.mark.parametrize(
    "path, expected",
    [
        (__file__, True),
        ("<stdin>", True),
        ("/venv/lib/python3.11/site-packages/numpy/core.py", True),
        ("/venv/lib/python3.11/site-packages/tensorflow/python/ops.py", False),
        ("/venv/lib/python3.11/dist-packages/tensorflow_core/python/ops.py", False),
        ("/home/me/tensorflow/train.py", True),
        (_tracebacks.__file__, False),
        (traceback.__file__, False),
        ("<frozen runpy>", False),
    ],
)
def test_whose_file_it_is(path, expected):
    assert is_of_user(path) == expected


@pytest.fixture
def own_hook(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    shorten_uncaught()
    return sys.excepthook


@pytest.mark.parametrize("switch, short", [(None, True), ("0", True), ("1", False)])
def test_the_interpreter_prints_the_short_one(own_hook, switch, short, monkeypatch, capsys):
    monkeypatch.delenv("TENSORPACK_FULL_TRACEBACK", raising=False)
    if switch is not None:
        monkeypatch.setenv("TENSORPACK_FULL_TRACEBACK", switch)
    error = caught(divide)
    own_hook(type(error), error, error.__traceback__)
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: the user's own" in printed
    assert ("argtools.py" not in printed) == short


def test_if_shortening_fails_the_error_is_printed_all_the_same(own_hook, monkeypatch, capsys):
    monkeypatch.setattr(_tracebacks, "traceback_text", None)
    error = caught(divide)
    own_hook(type(error), error, error.__traceback__)
    assert "ZeroDivisionError: the user's own" in capsys.readouterr().err


def test_the_hook_of_a_program_stays(monkeypatch):
    def hook(*args):
        pass

    monkeypatch.setattr(sys, "excepthook", hook)
    shorten_uncaught()
    assert sys.excepthook is hook
