"""Tests of `tensorpack.utils.progress`."""

import io
import itertools
import re
import time

import pytest

from tensorpack.utils import get_tqdm, get_tqdm_kwargs
from tensorpack.utils.gpu import change_env

VARIABLE = "TENSORPACK_PROGRESS_REFRESH"


@pytest.fixture(autouse=True)
def no_wish():
    """Runs without the user's own choice of seconds."""
    with change_env(VARIABLE, None):
        yield


def test_the_bar_of_the_log():
    screen = io.StringIO()
    assert list(get_tqdm(range(3), file=screen, ncols=60)) == [0, 1, 2]
    last = screen.getvalue().split("\r")[-1]
    assert re.fullmatch(r"100%\|#+\|3/3\[00:00<00:00, *[0-9.]+it/s\]\n", last)
    assert list(get_tqdm(iter("ab"), "letters", 2, file=screen)) == ["a", "b"]
    assert "letters: 100%" in screen.getvalue()


def test_values_are_shown_behind_the_rate_and_the_length_need_not_be_known():
    screen = io.StringIO()
    with get_tqdm(file=screen, mininterval=0) as bar:
        bar.set_postfix(cost="0.25", refresh=False)
        bar.update(7)
    assert re.search(r"7/\?.*it/s, cost=0\.25\]$", screen.getvalue().rstrip())


def test_in_a_file_it_is_drawn_at_the_beginning_and_the_end_only():
    screen = io.StringIO()
    with get_tqdm(total=1000, file=screen) as bar:
        for _ in range(1000):
            bar.update()
    assert screen.getvalue().count("\r") == 2


def test_seconds_in_a_file_and_what_replaces_them():
    assert get_tqdm_kwargs()["mininterval"] == 60  # standard error is captured
    assert get_tqdm_kwargs(mininterval=3, total=8)["mininterval"] == 3
    assert get_tqdm_kwargs(total=8)["total"] == 8
    with change_env(VARIABLE, "7.5"):
        assert get_tqdm_kwargs()["mininterval"] == 7.5


def test_in_a_terminal_it_is_lively_and_starts_no_thread(run_in_terminal):
    program = (
        "import threading\n"
        "from tensorpack.utils import get_tqdm\n"
        "with get_tqdm(total=1) as bar:\n"
        "    print([bar.mininterval, threading.active_count()])"
    )
    code, screen = run_in_terminal(program, env={VARIABLE: ""})
    assert code == 0 and "[0.5, 1]" in screen


def test_a_clock_that_jumps_is_not_looked_at(monkeypatch):
    jumps = itertools.cycle([0.0, 1e9, -1e9])
    monkeypatch.setattr("tqdm.std.time", lambda: time.monotonic() + next(jumps))
    screen = io.StringIO()
    with get_tqdm(total=30, file=screen, mininterval=1e-9) as bar:
        for _ in range(30):
            bar.update()
    times = re.findall(r"\[(\S+)<(\S+),", screen.getvalue())
    assert len(times) > 30 and {elapsed for elapsed, _ in times} == {"00:00"}
    assert {left for _, left in times} == {"?", "00:00"}
