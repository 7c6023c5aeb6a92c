"""Draws curves over the steps of a run as inline SVG, with colours left to the page."""

import math
from html import escape
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

Place = Callable[[float], float]  # where a value lies in the picture
Ticks = List[Tuple[float, str]]

_WIDTH, _HEIGHT = 340, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 320, 10, 162
COLOURS = 6  # classes `c0` to `c5`
_MOST_DOTS = 60  # of a line, with a value to read by pointing at it
_LOG_RATIO = 20.0  # from the median to the largest value, for a logarithmic axis
_TINY = 1e-290  # what is less has no place on an axis
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Line(NamedTuple):
    """A curve: values over steps, where None is a gap."""

    points: Sequence[Tuple[float, Optional[float]]]
    style: str  # class of its colour
    label: str


def draw_card(
    title: str, lines: Sequence[Line], span: Tuple[float, float], marks: Sequence[float] = ()
) -> str:
    """Returns a chart of lines over the steps in `span`, with its title and its legend.

    The last line is on top. `marks` are steps with a vertical line.
    """
    parts = [f"<b>{escape(title)}</b>"]
    for line in lines:
        values = [y for _, y in line.points if y is not None]
        text = "no finite number"
        if values:
            last, low, high = map(number_text, (values[-1], min(values), max(values)))
            gaps = len(line.points) - len(values)
            text = f"last {last}, from {low} to {high}" + f"; {gaps} not finite" * (gaps > 0)
        key = f'<span class="{line.style}">&#9632;</span> {escape(line.label)}: '
        parts.append(f"<p>{key if len(lines) > 1 else ''}{text}</p>")
    return f'<div class="card">{"".join(parts)}{_svg(title, lines, span, marks)}</div>'


def number_text(value: float, digits: int = 4) -> str:
    """Returns a number in a few characters, such as `12.5k` or `0.00123`."""
    for unit, letter in _UNITS:
        if abs(value) >= max(unit, 1e4):
            return f"{value / unit:.{digits}g}{letter}"
    return f"{value:.{digits}g}"


def _svg(
    title: str, lines: Sequence[Line], span: Tuple[float, float], marks: Sequence[float]
) -> str:
    values = [y for line in lines for _, y in line.points if y is not None]
    if not values:
        return ""
    low, high, median = min(values), max(values), sorted(values)[len(values) // 2]
    is_log = low > _TINY and high > _LOG_RATIO * median
    up, levels = (_logarithmic if is_log else _linear)(low, high, _BOTTOM, _TOP)
    across, steps = _linear(*span, _LEFT, _RIGHT)
    parts = []
    for y, text in levels:
        place = up(y)
        parts.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{_RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{place + 3.5:.1f}" class="up">{text}</text>')
    parts += [f'<text x="{across(x):.1f}" y="177">{text}</text>' for x, text in steps]
    parts.append(f'<text x="{(_LEFT + _RIGHT) / 2}" y="194" class="axis">step</text>')
    short = title if len(title) <= 24 else f"...{title[-21:]}"
    name = escape(short + ", logarithmic" * is_log)
    turned = f'transform="translate(11 {(_TOP + _BOTTOM) / 2}) rotate(-90)"'
    parts.append(f'<text {turned} class="axis">{name}</text>')
    inside = [across(mark) for mark in marks if span[0] < mark < span[1]]
    parts += [f'<path class="mark" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>' for x in inside]
    for line in lines:
        parts += _drawn(line, across, up)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(parts)}</svg>'


def _drawn(line: Line, across: Place, up: Place) -> List[str]:
    commands, dots, pen = [], [], "M"
    for x, y in line.points:
        if y is not None:
            left, top = f"{across(x):.1f}", f"{up(y):.1f}"
            commands.append(f"{pen}{left} {top}")
            title = f"<title>{escape(line.label)}, step {x:.0f}: {y:.6g}</title>"
            dots.append(f'<circle cx="{left}" cy="{top}" r="1.6">{title}</circle>')
        pen = "M" if y is None else "L"
    path = f'<path class="line" d="{"".join(commands)}"/>'
    shown = dots if len(dots) <= _MOST_DOTS else []
    return [f'<g class="{line.style}">', path, *shown, "</g>"]


def _linear(low: float, high: float, start: float, end: float) -> Tuple[Place, Ticks]:
    """An axis from the place `start` to the place `end`, with a few ticks."""
    if high - low <= max(abs(low), abs(high)) * 1e-9 + _TINY:
        room = abs(low) * 0.1 if abs(low) > _TINY else 1.0
        low, high = low - room, high + room
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    ticks = [n * step for n in range(first, last + 1)]
    scale = (end - start) / (high - low)
    return (lambda y: start + (y - low) * scale, [(y, number_text(y, 7)) for y in ticks])


def _logarithmic(low: float, high: float, start: float, end: float) -> Tuple[Place, Ticks]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = range(first, last + 1, max(1, (last - first) // 4))
    scale = (end - start) / (last - first)
    ticks = [(10.0**power, f"1e{power}") for power in powers]
    return (lambda y: start + (math.log10(y) - first) * scale, ticks)
