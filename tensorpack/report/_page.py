"""Puts the page together, and writes it. All text of a run is escaped."""

import os
import re
from html import escape
from itertools import chain
from string import Template
from typing import Any, Dict, List, Optional, Sequence, Union

from tensorpack.runs.record import utc_now
from tensorpack.runs.statistics import IS_SCORE, RESERVED, scalar_rank

from ._chart import COLOURS, Line, draw_card
from ._facts import attempts_of, facts_of, first_step_of, headline_of
from ._read import Run, read_run

# Light or dark as the reader's system is, wide or narrow as the screen.
_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --back: #fff; --card: #f6f7f9; --text: #1c2024; --soft: #5d6670;
  --edge: #dcdfe4; --good: #0a7040; --bad: #b3261e; --open: #a86200;
  --c0: #0b66c3; --c1: #c2550a; --c2: #00825d; --c3: #b0448c; --c4: #7a6a00; --c5: #6a55c9; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1d2125; --text: #e4e7ea;
  --soft: #9aa3ad; --edge: #343a41; --good: #4cc38a; --bad: #ff8a80; --open: #e0a040;
  --c0: #6cb0ff; --c1: #ff9d5c; --c2: #3ecfa0; --c3: #f08fcf; --c4: #d9c74a; --c5: #b3a4ff; } }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; } p { margin: .3rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; border-bottom: 1px solid var(--edge); }
h3, summary { font-size: 1rem; margin: 1.2rem 0 .5rem; color: var(--soft); }
.badge { padding: .1em .6em; border-radius: 1em; border: 1px solid; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
dl { display: grid; grid-template-columns: max-content 1fr; column-gap: 1rem; margin: 0; }
dt, .card p { color: var(--soft); margin: 0; } dd { margin: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: .8rem; }
.card, pre { background: var(--card); border: 1px solid var(--edge); border-radius: 6px;
  padding: .6rem; margin: 0; overflow-x: auto; font-size: .9em; }
svg { width: 100%; display: block; }
svg text { fill: var(--soft); font-size: 11px; text-anchor: middle; }
svg .up { text-anchor: end; } svg .axis { fill: var(--text); }
.grid { stroke: var(--edge); } .mark { stroke: var(--soft); stroke-dasharray: 3 3; }
.line { fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; }
circle { fill: currentColor; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); }
img { max-width: 100%; min-width: min(100%, 8rem); image-rendering: pixelated; }
@media (max-width: 36rem) { dl { display: block; } dd { margin-bottom: .5rem; } }
</style>
</head>
<body>
$body
<p>Written $time.</p>
</body>
</html>
""")
_STATISTICS = "Statistics of parameters, gradients and activations"
_GROUPS = {  # title -> what the names of its scalars have, in lower case
    _STATISTICS: re.compile(r"^(param-summary|summarygradient|activation-summary)/"),
    "Scores": IS_SCORE,
    "Costs and errors": re.compile(r"cost|loss|error|perplexity"),
    "Others": re.compile(""),
}
_SET = "train(?:ing)?|val(?:id(?:ation)?)?|test|eval(?:uation)?"  # the data that a scalar is about
_OF_A_SET = re.compile(rf"(^|[-_/])(?:{_SET})[-_/]|[-_/](?:{_SET})$", re.IGNORECASE)


def write_report(directory: Union[str, Sequence[str]], out: Optional[str] = None) -> str:
    """Writes what a log directory has to tell as one page of HTML, which needs no other file.

    It has the result and the circumstances of the run, curves of all scalars, the time report,
    pictures and the end of the log. What is missing or damaged there is left out, and said.

    Args:
      directory: the log directory; or several, whose curves are drawn in the same charts.
      out: path of the page; by default `report.html` in the directory, or in the one that has all
        of several.

    Returns:
      the path of the page.

    Raises:
      ValueError: there is no such directory, or it has no file of a run.
    """
    paths: List[Any] = [directory] if isinstance(directory, (str, os.PathLike)) else [*directory]
    full = [os.path.abspath(path) for path in paths]
    folder = paths[0] if len(paths) == 1 else os.path.commonpath(full)
    above = os.path.dirname(full[0]) if len(paths) == 1 else folder
    runs = [read_run(path, os.path.relpath(path, above)) for path in full]
    body = _about_one(runs[0]) if len(runs) == 1 else _about_several(runs)
    path = os.path.join(folder, "report.html") if out is None else out
    title = escape(", ".join(run.name for run in runs))
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(_PAGE.substitute(title=title, body=body, time=utc_now()))
    return path


def _about_one(run: Run) -> str:
    figures = "".join(
        f'<figure class="card"><img src="{uri}" alt=""><p>{escape(name)}</p></figure>'
        for name, uri in run.pictures
    )
    sections = {
        "Attempts": attempts_of(run),
        "Curves": _curves([run]),
        "Where the time goes": run.time and f"<p>{escape(run.time)}</p>",
        "Pictures": figures and f'<div class="cards">{figures}</div>',
        "The end of the log": run.log and f"<pre>{escape(run.log)}</pre>",
    }
    html = "\n".join(f"<h2>{name}</h2>\n{part}" for name, part in sections.items() if part)
    return f"<h1>{escape(run.name)}</h1>\n{headline_of(run)}\n{facts_of(run)}\n{html}"


def _about_several(runs: List[Run]) -> str:
    parts = [f"<h1>{len(runs)} runs</h1>"]
    for i, run in enumerate(runs):
        parts.append(f'<h2><span class="c{i % COLOURS}">&#9632;</span> {escape(run.name)}</h2>')
        facts = f"<details><summary>circumstances</summary>{facts_of(run)}</details>"
        parts += [headline_of(run), facts]
    return "\n".join([*parts, "<h2>Curves</h2>", _curves(runs)])


def _curves(runs: List[Run]) -> str:
    """Charts of all scalars: of one run, one chart for those that differ in their data alone."""
    is_one, epochs = len(runs) == 1, [epoch for run in runs for epoch in run.epochs]
    if not epochs:
        return ""
    steps = [epoch["global_step"] or 0.0 for epoch in epochs]
    span = min(steps), max(steps)  # one axis for all charts, so that one can compare them
    marks = [first_step_of(attempt) for attempt in runs[0].attempts[1:]] if is_one else []
    charts: Dict[str, List[Line]] = {}
    for name in sorted({*chain(*epochs)} - {*RESERVED}, key=scalar_rank):
        lines = charts.setdefault(_OF_A_SET.sub(r"\1", name) if is_one else name, [])
        for i, run in enumerate(runs):
            points = [(e["global_step"] or 0.0, e[name]) for e in run.epochs if name in e]
            if points:
                label, colour = (name, len(lines)) if is_one else (run.name, i)
                lines.append(Line(points, f"c{colour % COLOURS}", label))
    groups: Dict[str, List[str]] = {title: [] for title in [*_GROUPS][1:] + [_STATISTICS]}
    for title, lines in charts.items():
        title = lines[0].label if is_one and len(lines) == 1 else title
        group = next(name for name, words in _GROUPS.items() if words.search(title.lower()))
        groups[group].append(draw_card(title, lines, span, marks))
    note = "Over the steps, a value for each epoch."
    parts = [f"<p>{note}{' Dashed lines: where the run was resumed.' if marks else ''}</p>"]
    for title, cards in groups.items():
        html = f'<div class="cards">{"".join(cards)}</div>'
        if title == _STATISTICS:
            html = f"<details><summary>{title} ({len(cards)})</summary>{html}</details>"
        else:
            html = f"<h3>{title}</h3>{html}"
        parts.append(html if cards else "")
    return "\n".join(parts)
