"""Draws one scalar over the steps of a run as inline SVG, with colours left to the page."""

import math
from html import escape
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from tensorpack.runs.statistics import as_finite

Point = Tuple[float, Optional[float]]

_WIDTH, _HEIGHT = 340, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 10, 24
_MOST_POINTS = 300  # of a line; more cannot be told apart
_MOST_DOTS = 60  # with a value to read by pointing at it
_SMOOTH_FROM = 40  # points, from which noise is smoothed by a second line ...
_ROUGH = 5.0  # ... if the way up and down is so many times the range
_LOG_RATIO = 20.0  # from the median to the largest value, for a logarithmic axis
_TINY = 1e-290  # below which a power of ten may be 0
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Line(NamedTuple):
    """Values over steps; None is a gap."""

    points: Sequence[Point]
    kind: str = "now"  # class of the line: "now" or "earlier"
    label: str = ""


class _Axis(NamedTuple):
    """Where values lie on an axis of the picture."""

    place: Callable[[float], float]
    ticks: List[Tuple[float, str]]


def draw_chart(
    name: str,
    lines: Sequence[Line],
    marks: Sequence[float] = (),
    span: Optional[Tuple[float, float]] = None,
) -> str:
    """Returns the `<svg>` of lines that share their axes; "" if there is nothing to draw.

    The last one is drawn on top, and vertical lines at the steps `marks`. `span` is the least and
    the greatest step of the axis, by default those of the lines.
    """
    lines = [each._replace(points=[(x, as_finite(y)) for x, y in each.points]) for each in lines]
    known = [(x, y) for line in lines for x, y in line.points if y is not None]
    if not known:
        return ""
    left, right = span or (min(x for x, _ in known), max(x for x, _ in known))
    across = _linear(left, right, _LEFT, _WIDTH - _RIGHT, 4)
    up = _y_axis([y for _, y in known])
    parts = [_grid(across, up)]
    shown = [across.place(mark) for mark in marks if left < mark < right]
    bottom = _HEIGHT - _BOTTOM
    parts += [f'<path class="mark" d="M{x:.1f} {_TOP}V{bottom}"/>' for x in shown]
    for line in lines:
        parts += _drawn(line, across, up)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(name)} over the '
        f'steps">{"".join(parts)}</svg>'
    )


def number_text(value: Optional[float]) -> str:
    """Returns a number in a few characters, such as `12.5k` or `0.00123`."""
    if value is None or not math.isfinite(value):
        return "-"
    if value == int(value) and abs(value) < 1e5:
        return str(int(value))
    if 1e3 <= abs(value) < 1e5:
        return f"{value:.5g}"
    for unit, letter in _UNITS:
        if abs(value) >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"


def smoothed(points: Sequence[Point], width: int, every: int = 1) -> List[Point]:
    """Returns moving averages over `width` points, around the first and each `every`-th one."""
    values = [y for _, y in points]
    found: List[Point] = []
    for i in range(0, len(points), every):
        x, y = points[i]
        reach = min(width // 2, i, len(points) - 1 - i)  # not more on one side
        near = [value for value in values[i - reach : i + reach + 1] if value is not None]
        found.append((x, sum(near) / len(near) if y is not None else None))
    return found


def _drawn(line: Line, across: _Axis, up: _Axis) -> List[str]:
    smooths = line.kind == "now" and _is_rough([y for _, y in line.points if y is not None])
    parts = [_path(_thinned(line.points), across, up, f"{line.kind} raw" if smooths else line.kind)]
    if smooths:
        count = len(line.points)
        average = smoothed(line.points, max(5, count // 15), 1 + count // (4 * _MOST_POINTS))
        parts.append(_path(_thinned(average), across, up, line.kind))
    if len(line.points) <= (_MOST_DOTS if line.kind == "now" else 1):
        parts += [_dot(x, y, across, up, line) for x, y in line.points if y is not None]
    return parts


def _is_rough(values: Sequence[float]) -> bool:
    if len(values) < _SMOOTH_FROM:
        return False
    way = sum(abs(after - before) for before, after in zip(values, values[1:]))
    return way > _ROUGH * (max(values) - min(values))


def _thinned(points: Sequence[Point]) -> List[Point]:
    """The least and the greatest value of each of equal parts, so that no peak is lost."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    size = math.ceil(len(points) * 2 / _MOST_POINTS)
    found: List[Point] = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        known: List[Any] = [point for point in part if point[1] is not None]
        ends = {min(known, key=lambda p: p[1]), max(known, key=lambda p: p[1])} if known else set()
        found += sorted(ends) if known else [part[0]]
    return found


def _path(points: Sequence[Point], across: _Axis, up: _Axis, kind: str) -> str:
    commands, pen_up = [], True
    for x, y in points:
        if y is not None:
            commands.append(f"{'M' if pen_up else 'L'}{across.place(x):.1f} {up.place(y):.1f}")
        pen_up = y is None
    return f'<path class="line {kind}" d="{"".join(commands)}"/>'


def _dot(x: float, y: float, across: _Axis, up: _Axis, line: Line) -> str:
    text = f"{line.label + ', ' if line.label else ''}step {x:.0f}: {y:.6g}"
    at = f'cx="{across.place(x):.1f}" cy="{up.place(y):.1f}"'
    return f'<circle class="dot {line.kind}" {at} r="2.2"><title>{escape(text)}</title></circle>'


def _grid(across: _Axis, up: _Axis) -> str:
    parts = []
    for value, text in up.ticks:
        y = up.place(value)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y + 3.5:.1f}" class="up">{text}</text>')
    for value, text in across.ticks:
        parts.append(f'<text x="{across.place(value):.1f}" y="{_HEIGHT - 7}">{text}</text>')
    return "".join(parts)


def _y_axis(values: Sequence[float]) -> _Axis:
    low, high = min(values), max(values)
    median = sorted(values)[len(values) // 2]
    bottom, top = _HEIGHT - _BOTTOM, _TOP
    if not (low > _TINY and high > _LOG_RATIO * median):
        return _linear(low, high, bottom, top, 4)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    inner = _linear(first, last, bottom, top, 4)
    powers = range(first, last + 1, max(1, (last - first) // 4))
    ticks = [(10.0**power, f"1e{power}") for power in powers]
    return _Axis(lambda value: inner.place(math.log10(value)), ticks)


def _linear(low: float, high: float, start: float, end: float, count: int) -> _Axis:
    """An axis from the place `start` to the place `end`, with about so many ticks."""
    if not high - low > max(abs(low), abs(high)) * 1e-9 + _TINY:
        room = abs(low) * 0.1 or 1.0
        low, high = low - room, high + room
    rough = high / count - low / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough * 0.999)
    ticks = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    scale = (end - start) / (high - low)
    return _Axis(lambda value: start + (value - low) * scale, _tick_texts(ticks, step))


def _tick_texts(values: Sequence[float], step: float) -> List[Tuple[float, str]]:
    """Values with texts that tell them apart, all in one unit."""
    largest = max(map(abs, values), default=0.0)
    if not 1e-4 <= largest < 1e15:
        return [(value, f"{value:.4g}") for value in values]
    fitting = [each for each in _UNITS if largest >= max(each[0], 1e4) and step >= each[0] / 10]
    unit, letter = fitting[0] if fitting else (1.0, "")
    digits = max(0, -math.floor(math.log10(step / unit * 1.001)))
    digits += round(step / unit * 10**digits, 6) % 1 != 0  # a step of 2.5, as well
    return [(value, f"{value / unit:.{digits}f}{letter if value else ''}") for value in values]
