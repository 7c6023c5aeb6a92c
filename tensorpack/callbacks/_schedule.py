"""Values by a list of points in time, which may be steps, epochs or samples."""

from typing import List, Optional, Sequence, Tuple

from tensorpack.utils.checks import as_count

Points = List[Tuple[int, float]]


def check_interpolation(interp: Optional[str]) -> Optional[str]:
    """Returns None or "linear"."""
    if interp not in (None, "linear"):
        raise ValueError(f'interp must be None or "linear", got {interp!r}.')
    return interp


def check_schedule(schedule: Sequence[Tuple[int, float]]) -> Points:
    """Returns pairs of a time and a value, sorted by time."""
    times = [as_count("A schedule", "the time", when, least=0) for when, _ in schedule]
    if not times or len(set(times)) < len(times):
        raise ValueError(
            "A schedule is a list of (time, value) with different times from 0 on, got "
            f"{list(schedule)}."
        )
    return sorted((int(when), float(value)) for when, value in schedule)


def value_at(points: Points, now: int, interp: Optional[str], in_force: bool) -> Optional[float]:
    """Returns the value to set at exactly this time; None if there is none.

    Args:
      points: what `check_schedule` returned.
      now: the time.
      interp: "linear" to interpolate between two points, None for steps.
      in_force: whether a value that was to be set before counts too.
    """
    passed = [point for point in points if point[0] <= now]
    if not passed:
        return None
    start, value = passed[-1]
    if start < now and interp == "linear" and len(passed) < len(points):
        end, then = points[len(passed)]
        return value + (then - value) * (now - start) / (end - start)
    return value if in_force or start == now else None
