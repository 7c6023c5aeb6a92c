"""The section of curves: every scalar of the run, what the run is about first."""

import re
from html import escape
from typing import Any, Dict, List, Optional, Tuple

from tensorpack.runs.curves import IS_SCORE, RESERVED, scalar_rank
from tensorpack.runs.statistics import Epoch

from ._chart import Line, draw_chart, number_text
from ._facts import dict_in
from ._read import Run

_GROUPS = (
    ("Scores", IS_SCORE),
    ("Costs and errors", re.compile(r"cost|loss|error|perplexity")),
)
_OTHERS, _STATISTICS = "Others", "Statistics of parameters, gradients and activations"
_IS_STATISTIC = re.compile(r"^(param-summary|SummaryGradient|activation-summary)/")
_MOST_CHARTS = 200

Points = List[Tuple[float, Optional[float]]]


def curves_of(run: Run) -> str:
    now, earlier = _series_of(run.epochs), [(name, _series_of(e)) for name, e in run.earlier]
    names = list(dict.fromkeys([*now, *(name for _, series in earlier for name in series)]))
    marks, every = _marks(run), [now, *(series for _, series in earlier)]
    # One axis for all, so that one can compare the charts.
    steps = [x for series in every for points in series.values() for x, _ in points]
    span = min(steps, default=0.0), max(steps, default=1.0)
    groups: Dict[str, List[str]] = {}
    for name in sorted(names, key=scalar_rank)[:_MOST_CHARTS]:
        lines = [Line(s[name], "earlier", label) for label, s in earlier if name in s]
        if name in now:
            lines.append(Line(now[name]))
        card = _card(name, lines, now.get(name), marks, span)
        groups.setdefault(_group_of(name), []).append(card)
    parts = [_explain(run, marks, len(names))] if names else []
    for title in (*(title for title, _ in _GROUPS), _OTHERS, _STATISTICS):
        cards, count = "".join(groups.get(title, [])), len(groups.get(title, []))
        cards = f'<div class="cards">{cards}</div>' if cards else ""
        if cards and title == _STATISTICS:
            parts.append(f"<details><summary>{title} ({count})</summary>{cards}</details>")
        elif cards:
            parts.append(f"<h3>{title}</h3>{cards}")
    return "\n".join(parts)


def _series_of(epochs: List[Epoch]) -> Dict[str, Points]:
    series: Dict[str, Points] = {}
    for epoch in epochs:
        for name, value in epoch.items():
            if name not in RESERVED:
                series.setdefault(name, []).append((epoch["global_step"] or 0.0, value))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in series.items()}


def _marks(run: Run) -> List[float]:
    """The steps from which later attempts resumed."""
    steps = [dict_in(each, "training").get("first_step") for each in run.attempts[1:]]
    return [float(each) for each in steps if isinstance(each, int) and 0 < each < 1e15]


def _group_of(name: str) -> str:
    if _IS_STATISTIC.match(name):
        return _STATISTICS
    return next((t for t, words in _GROUPS if words.search(name.lower())), _OTHERS)


def _card(
    name: str, lines: List[Line], now: Optional[Points], marks: List[float], span: Any
) -> str:
    drawing = draw_chart(name, lines, marks, span)
    if not drawing:
        return f'<div class="card"><b>{escape(name)}</b><p>no number that can be drawn</p></div>'
    values = [value for _, value in now or [] if value is not None]
    text = "only in earlier runs"
    if values:
        text = f"last {number_text(values[-1])}, from {number_text(min(values))} to "
        text += number_text(max(values))
    gaps = sum(value is None for _, value in now or [])
    text += f"; {gaps} not finite" if gaps else ""
    return f'<div class="card"><b>{escape(name)}</b><p>{escape(text)}</p>{drawing}</div>'


def _explain(run: Run, marks: List[float], count: int) -> str:
    parts = ["Over the steps of the run, a value for each epoch."]
    if marks:
        parts.append("Dashed lines: where the run was resumed.")
    if run.earlier:
        names = ", ".join(name for name, _ in run.earlier)
        parts.append(f"Grey: what only files that were put aside have ({names}).")
    if count > _MOST_CHARTS:
        parts.append(f"The first {_MOST_CHARTS} of {count} scalars.")
    return f'<p class="soft">{escape(" ".join(parts))}</p>'
