import pytest

from tensorpack.callbacks._pace import Pace


def looks(pace, step_seconds, until, steps=0, seconds=0.0):
    """The distances of looks as long as steps take so long; and the totals then."""
    distances = []
    while seconds < until:
        distances.append(pace.distance(steps, seconds))
        steps += distances[-1]
        seconds += distances[-1] * step_seconds
    return distances, steps, seconds


def test_looks_are_so_far_apart_on_average_and_at_no_period():
    distances, _, _ = looks(Pace(0.1), 0.001, until=20)
    assert sum(distances) / len(distances) == pytest.approx(100, rel=0.05)
    assert len(set(distances)) > 50 and max(distances) <= 201


def test_slow_steps_are_looked_at_each():
    assert set(looks(Pace(0.1), 1.0, until=20)[0]) == {1}


def test_the_distance_follows_the_speed():
    pace = Pace(0.1)
    _, steps, seconds = looks(pace, 0.1, until=20)
    distances, *_ = looks(pace, 0.001, 30, steps, seconds)
    assert sum(distances[-20:]) / 20 == pytest.approx(100, rel=0.1)


def test_after_a_late_look_only_the_speed_since_the_last_one_counts():
    pace = Pace(0.1)
    _, steps, seconds = looks(pace, 0.001, until=20)
    pace.distance(steps, seconds)
    assert pace.distance(steps + 5, seconds + 0.5, late=True) in (1, 2)


def test_totals_may_begin_anew_and_the_speed_is_that_of_before():
    pace = Pace(0.1)
    _, steps, seconds = looks(pace, 0.001, until=20)
    pace.distance(steps, seconds)
    pace.restart()
    distances = looks(pace, 0.001, until=2)[0]
    assert sum(distances) / len(distances) == pytest.approx(100, rel=0.1)


def test_without_a_speed_it_is_the_next_step():
    assert Pace(0.1).distance(0, 0.0) == 1
    assert Pace(0.1).distance(3, 0.0) == 1
