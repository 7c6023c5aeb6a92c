import pytest

from tensorpack.callbacks._time_window import Meters, TimeWindow
from tensorpack.input_source.waiting import WaitReading


def test_only_what_is_between_enter_and_leave_counts():
    window = TimeWindow()
    window.enter(Meters(10.0, 5, 1.0, 2.0, 3.0, 100))
    window.leave(Meters(14.0, 9, 2.0, 5.0, 4.0, 130))
    assert window.total(Meters(99.0, 99)) == Meters(4.0, 4, 1.0, 3.0, 1.0, 30)
    window.enter(Meters(20.0, 9, 7.0, 5.0, 8.0, 500))
    now = Meters(21.0, 11, 7.5, 6.0, 9.0, 510)
    assert window.total(now) == Meters(5.0, 6, 1.5, 4.0, 2.0, 40)
    window.leave(now)
    assert window.total(Meters()) == Meters(5.0, 6, 1.5, 4.0, 2.0, 40)


def test_a_window_may_begin_in_the_middle():
    assert TimeWindow(Meters(10.0, 5)).total(Meters(11.0, 7)) == Meters(1.0, 2)


def test_figures():
    window = TimeWindow(Meters())
    window.take(WaitReading(0.1, 1.0), Meters(5.0, 10, 4.0))
    window.take(WaitReading(0.3, 0.0), Meters(10.0, 20, 7.5))
    found = window.figures(Meters(10.0, 20, 7.5, 8.0, 6.0, 80), cores=2, env_steps=8.0)
    assert (found.seconds, found.steps, found.env_steps) == (10.0, 20, 8.0)
    assert found.waiting == pytest.approx(0.2 * 20 / 10)  # each sample stands for ten steps
    assert (found.callbacks, found.busy, found.machine) == (0.25, 0.4, 0.6)
    assert (found.fill, found.trend) == (0.5, -1.0)


def test_shares_are_shares():
    window = TimeWindow(Meters())
    window.take(WaitReading(5.0, None), Meters(1.0, 10, 0.75))
    found = window.figures(Meters(1.0, 10, 0.75))
    assert (found.waiting, found.callbacks, found.fill) == (0.75, 0.25, None)
    found = window.figures(Meters(1.0, 10, -3.0))
    assert (found.waiting, found.callbacks, found.fill) == (0.0, 1.0, None)


def test_a_sample_stands_for_the_steps_since_the_last_one():
    window = TimeWindow(Meters())
    window.take(WaitReading(0.0, None), Meters(1.0, 1000, 1.0))
    window.take(WaitReading(0.1, None), Meters(2.0, 1010, 2.0))
    assert window.figures(Meters(2.0, 1010, 2.0)).waiting == pytest.approx(0.5)
    # as much of the steps that no sample stands for yet
    assert window.figures(Meters(4.0, 9999, 4.0)).waiting == pytest.approx(0.5)


def test_before_a_sample_that_was_put_off_no_more_is_waited_than_time_passed():
    window = TimeWindow(Meters())
    window.take(WaitReading(0.0, None), Meters(2.0, 1000, 2.0))
    window.put_off(Meters(3.0, 1100, 3.0))  # most of them were fast
    window.take(WaitReading(0.1, None), Meters(4.0, 1110, 4.0))
    assert window.figures(Meters(4.0, 1110, 4.0)).waiting == pytest.approx((1 + 1) / 4)
    window.take(WaitReading(0.1, None), Meters(8.0, 1150, 8.0))
    assert window.figures(Meters(8.0, 1150, 8.0)).waiting == pytest.approx((2 + 4) / 8)


def test_what_was_not_measured_is_not_said():
    assert TimeWindow(Meters()).figures(Meters(1.0, 10)).waiting is None
    assert TimeWindow(Meters()).figures(Meters(1.0, 10, 3.0)).callbacks == 0.0
    empty = TimeWindow().figures(Meters(1.0, 10))
    assert (empty.seconds, empty.updates, empty.callbacks) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "fills, change",
    [([], 0.0), ([0.3], 0.0), ([1.0, 0.5, 0.0], -1.0), ([0.2] * 5, 0.0), ([0, 1, 0, 1, 0], 0.0)],
)
def test_the_trend_is_that_of_a_fitted_line(fills, change):
    window = TimeWindow(Meters())
    for each in fills:
        window.take(WaitReading(0.0, each), Meters())
    assert window.figures(Meters(1.0, 1)).trend == pytest.approx(change)
