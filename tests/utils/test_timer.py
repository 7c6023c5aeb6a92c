"""Tests of `tensorpack.utils.timer`."""

import pytest

from tensorpack.utils.timer import (
    IterSpeedCounter,
    Timer,
    humanize_time_delta,
    print_total_timer,
    timed_operation,
    total_timer,
)


def messages(capsys):
    return [line.split("] ", 1)[1] for line in capsys.readouterr().out.splitlines()]


def test_a_timer_counts_what_it_runs(clock):
    timer = Timer(clock)
    clock.now += 2
    assert timer.seconds() == 2 and not timer.is_paused()
    timer.pause()
    clock.now += 10
    assert timer.seconds() == 2 and timer.is_paused()
    timer.resume()
    clock.now += 1
    assert timer.seconds() == 3
    timer.pause()
    timer.reset()
    clock.now += 4
    assert timer.seconds() == 4 and not timer.is_paused()


def test_timed_operation_names_the_block_and_whether_it_failed(clock, capsys):
    with timed_operation("loading", log_start=True, clock=clock):
        clock.now += 1.5
    with pytest.raises(KeyError):
        with timed_operation("reading", clock=clock):
            clock.now += 2
            raise KeyError
    start, *ends = capsys.readouterr().out.splitlines()
    assert start.endswith("] Start loading ...")
    assert ends[0].endswith("] loading finished, time:1.5000sec.")
    assert ends[1].endswith("] reading failed, time:2.0000sec.") and len(ends) == 2


def test_totals(clock, capsys):
    with total_timer("read", clock):
        clock.now += 0.5
    for seconds in (1, 3):
        with total_timer("decode", clock):
            clock.now += seconds
    with pytest.raises(KeyError):
        with total_timer("decode", clock):
            clock.now += 2
            raise KeyError
    print_total_timer()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[-2:] == [["decode", "6", "3", "2000"], ["read", "0.5", "1", "500"]]


def test_speed_is_logged_every_few_rounds(clock, capsys):
    count = IterSpeedCounter(3, name="read", clock=clock)
    for _ in range(7):
        clock.now += 0.5
        count()
    assert messages(capsys) == ["read: 0.5000 sec/iter, 2 iter/sec"] * 2
    count.reset()
    for _ in range(3):
        count()
    assert messages(capsys) == ["read: 0.0000 sec/iter, inf iter/sec"]


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0, "0.00 seconds"),
        (1.234, "1.23 seconds"),
        (10, "10 seconds"),
        (-1, "-1.00 seconds"),  # of a clock that was set back
        (59.6, "1 minute"),
        (61, "1 minute 1 second"),
        (3600, "1 hour"),
        (2 * 86400 + 3 * 3600 + 4 * 60 + 5, "2 days 3 hours 4 minutes 5 seconds"),
    ],
)
def test_durations_in_words(seconds, words):
    assert humanize_time_delta(seconds) == words
