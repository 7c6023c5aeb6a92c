"""The lower sections of the page: time, images, parameters, the log, the files."""

import os
import re
from html import escape
from typing import Any, Iterable, Sequence
from urllib.parse import quote

from tensorpack.runs.statistics import as_finite
from tensorpack.utils._words import size_text

from ._read import Run

_SHOWN_ROWS = 30  # of a table that is not folded
_MOST_PARAMETERS = 2000
_SHARES = (  # of a time report: field, class, label
    ("waiting", "wait", "waiting for data"),
    ("stepping", "step", "stepping"),
    ("callbacks", "call", "callbacks"),
)
_WHAT = (
    (r"run\.json", "how it was run, and how it ended"),
    (r"stats\.json", "the scalars of each epoch"),
    (r"stats\.json\..*", "the scalars of an earlier run"),
    (r"stats\.csv", "the scalars of each epoch"),
    (r"log\.log", "the log"),
    (r"log\.log\..*", "the log of an earlier attempt"),
    (r"events\.out\.tfevents\..*", "for TensorBoard"),
    (r"checkpoint", "which checkpoint is the newest"),
    (r"segments", "parts of the saved states"),
    (r"graph-.*\.meta", "the graph"),
    (r".*\.data-\d+-of-\d+|.*\.index", "variables"),
    (r".*\.manifest\.json", "checksums of a checkpoint"),
    (r".*\.state", "what a resumed run needs beside the variables"),
    (r"chrome-trace-.*\.json", "the ops of a step, for ui.perfetto.dev"),
    (r"episodes\.csv", "every game that was played"),
    (r"settings\.json", "what decides how scores compare"),
    (r"time_reports\.jsonl", "where the time went"),
    (r".*\.corrupt", "could not be read, and was put aside"),
)


def times_of(run: Run) -> str:
    """Returns the last time report, with the earlier ones folded."""
    if not run.times:
        return ""
    *before, last = run.times
    text = _share_bar(last) + f"<p>{escape(_time_text(last))}</p>\n"
    if before:
        lines = "".join(f"<p>{escape(_time_text(each))}</p>" for each in reversed(before[-50:]))
        text += f"<details><summary>{len(before)} earlier</summary>{lines}</details>\n"
    return text


def _time_text(report: Any) -> str:
    at = report.get("at") or (f"step {report['step']}" if "step" in report else "")
    return f"{at}: {report['text']}" if at else report["text"]


def _share_bar(report: Any) -> str:
    shares = [(as_finite(report.get(name)), css, label) for name, css, label in _SHARES]
    known = [(each, *words) for each, *words in shares if each is not None and 0 <= each <= 1]
    if not known:
        return ""
    bars = "".join(f'<i class="{css}" style="width:{share:.1%}"></i>' for share, css, _ in known)
    keys = "".join(
        f'<span><i class="{css}"></i> {label} {share:.0%}</span>' for share, css, label in known
    )
    return f'<div class="bar">{bars}</div><p class="key">{keys}</p>\n'


def samples_of(run: Run, links_from: str) -> str:
    figures = "".join(
        f'<figure class="card"><img src="{each.uri}" alt="{escape(each.name)}">'
        f"<figcaption>{_link(run, each.name, links_from)} {escape(each.note)}</figcaption></figure>"
        for each in run.samples
    )
    return f'<div class="cards">{figures}</div>\n' if figures else ""


def parameters_of(run: Run) -> str:
    if not run.parameters:
        return ""
    rows = [
        (
            escape(name),
            " x ".join(map(str, each.shape)) or "scalar",
            escape(each.dtype),
            f"{each.size:,}",
        )
        for name, each in run.parameters
    ]
    total = sum(each.size for _, each in run.parameters)
    table = table_of(("name", "shape", "dtype", "size"), rows[:_MOST_PARAMETERS], number=3)
    return f"<p>{len(rows)} variables, {total:,} numbers</p>" + _folded(table, len(rows))


def log_of(run: Run) -> str:
    return f"<pre>{escape(chr(10).join(run.log))}</pre>\n" if run.log else ""


def files_of(run: Run, links_from: str) -> str:
    rows = []
    for name, size in run.files:
        link = _link(run, name, links_from) + ("" if size is not None else "/")
        what = next((what for pattern, what in _WHAT if re.fullmatch(pattern, name)), "")
        rows.append((link, size_text(size, ""), what))
    return _folded(table_of(("file", "size", "what it is"), rows, number=1), len(rows))


def _link(run: Run, name: str, links_from: str) -> str:
    path = os.path.relpath(os.path.join(run.directory, name), links_from)
    # Behind "./" no name is taken for a protocol.
    link = "./" + quote(os.fsencode(path).replace(os.sep.encode(), b"/"))
    return f'<a href="{escape(link)}">{escape(name)}</a>'


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]], number: int = -1) -> str:
    """Returns a table of cells that are HTML; those of the column `number` are numbers."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = [" class=number" * (i == number) for i in range(len(cells))]
        marked = (f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, cells))
        return f"<tr>{''.join(marked)}</tr>"

    lines = "".join([line("th", heads), *(line("td", row) for row in rows)])
    return f'<div class="wide"><table>{lines}</table></div>\n'


def _folded(table: str, count: int) -> str:
    if count <= _SHOWN_ROWS:
        return table
    return f"<details><summary>all {count}</summary>{table}</details>\n"
