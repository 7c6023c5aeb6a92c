"""Charts of the scalars of runs over their steps: which there are, and each as SVG or in a PNG."""

import math
import re
from html import escape
from textwrap import fill
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tensorpack.runs.statistics import IS_SCORE, RESERVED, Epoch, scalar_rank
from tensorpack.utils.optional import require

STATISTICS = "Statistics of parameters, gradients and activations"
COLOURS = 6  # classes `c0` to `c5` of the page
_GROUPS = {  # title -> what the names of its scalars have, in lower case
    STATISTICS: re.compile(r"^(param-summary|summarygradient|activation-summary)/"),
    "Scores": IS_SCORE,
    "Costs and errors": re.compile(r"cost|loss|error|entropy|perplexity"),
    "Others": re.compile(""),
}
_SET = "train(?:ing)?|val(?:id(?:ation)?)?|test|eval(?:uation)?"  # the data that a scalar is about
_OF_A_SET = re.compile(rf"(^|[-_/])(?:{_SET})[-_/]|[-_/](?:{_SET})$", re.IGNORECASE)
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 320, 10, 162  # of the axes, in a picture of 340 x 200
_MOST_DOTS = 60  # of a line, with a value to read by pointing at it
_LOG_RATIO = 20.0  # from the median to the largest value, for a logarithmic axis


class Line(NamedTuple):
    """A curve: values over steps, where None is a gap."""

    label: str
    colour: int
    points: List[Tuple[float, Optional[float]]]


Charts = Dict[str, List[Line]]  # title -> lines that share their axes, the last on top


def charts_of(runs: Dict[str, List[Epoch]]) -> Dict[str, Charts]:
    """Returns the charts of each group that has some.

    Scalars of one run that differ in their data alone, such as the costs of training and of
    validation, share one; those of several runs have a line for each run.
    """
    charts: Charts = {}
    names = {name for run in runs.values() for epoch in run for name in epoch} - {*RESERVED}
    for name in sorted(names, key=scalar_rank):
        lines = charts.setdefault(_OF_A_SET.sub(r"\1", name) if len(runs) == 1 else name, [])
        for i, (run, epochs) in enumerate(runs.items()):
            points: List[Any] = [(e["global_step"], e[name]) for e in epochs if name in e]
            label, colour = (name, len(lines)) if len(runs) == 1 else (run, i)
            lines += [Line(label, colour % COLOURS, points)] if points else []
    groups: Dict[str, Charts] = {group: {} for group in [*_GROUPS][1:] + [STATISTICS]}
    for title, lines in charts.items():
        title = lines[0].label if len(runs) == len(lines) == 1 else title
        group = next(group for group, words in _GROUPS.items() if words.search(title.lower()))
        groups[group][title] = lines
    return {group: members for group, members in groups.items() if members}


def card(
    title: str, lines: List[Line], span: Tuple[float, float], marks: Sequence[float] = ()
) -> str:
    """Returns a chart over the steps in `span` as HTML, with its title and its legend.

    `marks` are steps with a vertical line.
    """
    across, steps = _axis(*span, False, _LEFT, _RIGHT)
    up, levels = _axis(*_range(lines), _BOTTOM, _TOP)
    name = title if len(title) < 24 else f"...{title[-20:]}"
    legend = f"<b>{escape(title)}</b>"
    parts = [
        '<svg viewBox="0 0 340 200"><text x="197" y="194" class="axis">step</text>',
        f'<text class="axis" transform="translate(11 86) rotate(-90)">{escape(name)}</text>',
    ]
    for place, text in levels:
        parts.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{_RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{place + 3.5:.1f}" class="up">{text}</text>')
    parts += [f'<text x="{place:.1f}" y="177">{text}</text>' for place, text in steps]
    inside = [across(mark) for mark in marks if span[0] < mark < span[1]]
    parts += [f'<path class="mark" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>' for x in inside]
    for line in lines:
        values = [y for _, y in line.points if y is not None] or [math.nan]
        last, low, high = map(number_text, (values[-1], min(values), max(values)))
        key = f'<span class="c{line.colour}">&#9632;</span> {escape(line.label)}: '
        legend += f"<p>{key if len(lines) > 1 else ''}last {last}, from {low} to {high}</p>"
        path, dots, pen = "", [], "M"
        for step, value in line.points:
            if value is not None:
                x, y = f"{across(step):.1f}", f"{up(value):.1f}"
                path += f"{pen}{x} {y}"
                tip = f"{escape(line.label)}, step {step:.0f}: {value:.6g}"
                dots.append(f'<circle cx="{x}" cy="{y}" r="2"><title>{tip}</title></circle>')
            pen = "M" if value is None else "L"
        shown = dots if len(dots) <= _MOST_DOTS else []
        parts += [f'<g class="c{line.colour}"><path class="line" d="{path}"/>', *shown, "</g>"]
    return f'<div class="card">{legend}{"".join(parts)}</svg></div>'


def number_text(value: float, digits: int = 4) -> str:
    """Returns a number in a few characters, such as `12.5k` or `0.00123`."""
    for unit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(unit, 1e4):
            return f"{value / unit:.{digits}g}{letter}"
    return f"{value:.{digits}g}"


def _range(lines: List[Line]) -> Tuple[float, float, bool]:
    """Lowest and highest value, and whether they are too far apart for a linear axis."""
    values = sorted(y for line in lines for _, y in line.points if y is not None) or [0.0]
    low, median, high = values[0], values[len(values) // 2], values[-1]
    return low, high, low > 0 and high > _LOG_RATIO * median


def _axis(
    low: float, high: float, is_log: bool, start: float, end: float
) -> Tuple[Callable[[float], float], List[Tuple[float, str]]]:
    """Returns a function from a value to its place between two coordinates, and a few ticks."""
    if is_log:
        low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        step = max(1.0, (high - low) // 4)
    else:
        if high - low <= max(abs(low), abs(high), 1e-280) * 1e-9:
            room = abs(low) * 0.1 if abs(low) > 1e-280 else 1.0
            low, high = low - room, high + room
        power = 10.0 ** math.floor(math.log10((high - low) / 6))
        step = next(power * n for n in (1, 2, 5, 10) if power * n * 6.01 >= high - low)
    scale = (end - start) / (high - low)
    ticks = []
    for n in range(math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6) + 1):
        text = f"1e{n * step:.0f}" if is_log else number_text(n * step, 7)
        ticks.append((start + (n * step - low) * scale, text))
    return lambda y: start + ((math.log10(y) if is_log else y) - low) * scale, ticks


def write_png(path: str, groups: Dict[str, Charts]) -> None:
    """Draws charts by matplotlib, without those of statistics."""
    charts = [chart for group in groups if group != STATISTICS for chart in groups[group].items()]
    rows = max(1, math.ceil(len(charts) / 3))
    figure = require("matplotlib.figure").Figure((15.0, 3.4 * rows), tight_layout=True)
    for i, (title, lines) in enumerate(charts):
        axes = figure.add_subplot(rows, 3, i + 1, xlabel="step")
        axes.set_title(fill(title.replace("$", r"\$"), 55), fontsize="medium")
        axes.set_yscale("log" if _range(lines)[2] else "linear")
        for line in lines:
            label = fill(line.label.replace("$", r"\$"), 40)
            axes.plot(*zip(*line.points), ".-", label=label, color=f"C{line.colour}")
        if len(lines) > 1:
            axes.legend(fontsize="small")
    figure.savefig(path)
