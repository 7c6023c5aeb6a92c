"""Notes of exceptions, which are printed with them, and whose a source file is."""

import traceback

import pytest

from tensorpack.utils import _tracebacks
from tensorpack.utils._tracebacks import add_note, is_of_user, notes_of


def fail():
    try:
        raise KeyError("first")
    except KeyError as error:
        raise ValueError("second") from error


@pytest.mark.parametrize("cut", [False, True])
def test_notes_are_printed_beside_causes(cut):
    with pytest.raises(ValueError) as caught:
        fail()
    error = caught.value
    if cut:
        error.__cause__, error.__suppress_context__ = None, True
    assert notes_of(error) == []
    add_note(error, "one note")
    add_note(error, "another")
    assert (type(error), str(error)) == (ValueError, "second")
    assert notes_of(error) == ["one note", "another"]
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert text.count("one note") == text.count("another") == 1
    assert ("KeyError" in text) is not cut


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
