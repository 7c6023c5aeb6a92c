"""Tests of `tensorpack.utils.workers.worker_errors`."""

import pytest

from tensorpack.utils._tracebacks import add_note, notes_of
from tensorpack.utils.workers.worker_errors import (
    WorkerDied,
    WorkerFailed,
    WorkerTraceback,
    failure_from_bytes,
    failure_to_bytes,
)


class Own(Exception):
    """Comes back as it was."""


class Unpicklable(Exception):
    def __init__(self, number, function):
        super().__init__(f"number {number}")
        self.function = function


class Remade(Exception):
    """Has another text when it is made again from its arguments."""

    def __init__(self, number):
        super().__init__(f"number {number}")


def travel(error):
    try:
        raise error
    except type(error) as caught:
        return failure_from_bytes(failure_to_bytes(caught), "Loader", 12)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("broken"),
        FileNotFoundError(2, "gone", "file"),
        UnicodeDecodeError("ascii", b"\xff", 0, 1, "bad"),
        Own("broken", 3),
    ],
    ids=repr,
)
def test_an_exception_comes_back_as_it_was(error):
    back = travel(error)
    assert (type(back), back.args, str(back)) == (type(error), error.args, str(error))
    text = str(back.__cause__)
    assert isinstance(back.__cause__, WorkerTraceback)
    assert text.startswith("in worker 'Loader' (pid 12)\nTraceback (most recent call last):\n")
    assert "in travel" in text


@pytest.mark.parametrize(
    "error, name",
    [
        (StopIteration("over"), "StopIteration"),
        (SystemExit(3), "SystemExit"),
        (Unpicklable(3, lambda: None), f"{__name__}.Unpicklable"),
        (Remade(3), f"{__name__}.Remade"),
    ],
)
def test_one_that_cannot_stand_for_itself_is_a_failure_that_names_it(error, name):
    back = travel(error)
    assert isinstance(back, WorkerFailed)
    assert str(back) == f"Worker 'Loader' (pid 12) failed with {name}: {error}"
    assert "in travel" in str(back.__cause__)


@pytest.mark.parametrize("error", [ValueError("broken"), Unpicklable(3, lambda: None)], ids=repr)
def test_notes_travel(error):
    add_note(error, "the note")
    assert notes_of(travel(error)) == ["the note"]


def test_a_long_text_fits_into_a_pipe_and_its_end_is_kept():
    data = failure_to_bytes(ValueError("x" * 10**6 + "\udc80"))
    assert len(data) < 60000
    back = str(failure_from_bytes(data, "Loader", 12))
    assert "ValueError: xxx" in back and 1900 < len(back) < 2100
    data = failure_to_bytes(ValueError("x" * 10**4))
    assert repr(failure_from_bytes(data, "Loader", 12)) == repr(ValueError("x" * 10**4))


def test_a_report_that_is_cut_off_is_understood_as_far_as_it_goes():
    data = failure_to_bytes(ValueError("broken"))
    back = failure_from_bytes(data[: data.rindex(b"broken")], "Loader", 12)
    assert repr(back) == repr(ValueError("broken"))


@pytest.mark.parametrize(
    "exitcode, signum, how",
    [
        (-9, 9, "was killed by SIGKILL (signal 9). If the machine ran out of memory, dmesg"),
        (-11, 11, "was killed by SIGSEGV (signal 11)."),
        (143, 15, "was killed by SIGTERM (signal 15)."),
        (-40, 40, "was killed by a signal (signal 40)."),
        (3, None, "ended with exit code 3."),
    ],
)
def test_a_death_says_how(exitcode, signum, how):
    error = WorkerDied("Loader-1", 123, exitcode)
    assert str(error).startswith(f"Worker 'Loader-1' (pid 123) {how}")
    assert (error.name, error.pid, error.exitcode) == ("Loader-1", 123, exitcode)
    assert error.signum == signum
