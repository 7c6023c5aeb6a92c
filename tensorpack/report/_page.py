"""A page of HTML about runs: what was run where, how it ended, curves, time, pictures and logs.

All text of a run is escaped.
"""

import base64
import json
import os
import re
import shlex
from collections import deque
from contextlib import suppress
from html import escape
from string import Template
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

import numpy as np

from tensorpack.runs.record import LOST, read_record, utc_now
from tensorpack.runs.statistics import Epoch, read_epochs
from tensorpack.utils._directory_lock import is_locked
from tensorpack.utils._words import size_text
from tensorpack.utils.timer import humanize_time_delta

from ._charts import COLOURS, STATISTICS, Charts, card, charts_of, write_png

_LINES = 60  # of the log
_MOST_PICTURES = 24
_FACTS = "folder host started ended machine versions git".split()  # of an attempt
# Series, number and index of names such as `{prefix}-ep{epoch}-{index}.png`.
_PICTURE = re.compile(r"(.*?)(?:(\d+)(-\d+)?)?\.(png|jpe?g|gif|webp)$", re.IGNORECASE)
_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1c2024; --soft: #5d6670; --bad: #b3261e;
  --c0: #0b66c3; --c1: #b4500a; --c2: #007a57; --c3: #b0448c; --c4: #7a6a00; --c5: #6a55c9; }
@media (prefers-color-scheme: dark) { :root {
  --back: #14171a; --text: #e4e7ea; --soft: #9aa3ad; --bad: #ff8a80;
  --c0: #6cb0ff; --c1: #ff9d5c; --c2: #3ecfa0; --c3: #f08fcf; --c4: #d9c74a; --c5: #b3a4ff; } }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; } p { margin: .3rem 0; } details { margin: 1.2rem 0; }
summary { font-weight: 600; margin-bottom: .5rem; border-bottom: 1px solid #8885; }
.badge { padding: .1em .6em; border-radius: 1em; border: 1px solid; font-weight: 600; }
.finished { color: var(--c2); } .failed, .lost { color: var(--bad); }
.running, .stopped, .note { color: var(--c1); }
dl { display: grid; grid-template-columns: max-content 1fr; column-gap: 1rem; margin: 0; }
dt, .card p { color: var(--soft); } dd, .card p { margin: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: .8rem; }
.card, .log { background: #8881; border: 1px solid #8884; border-radius: 6px; padding: .6rem;
  overflow-x: auto; font-size: .9em; }
.log { font-family: monospace; white-space: pre-wrap; }
svg { width: 100%; display: block; } circle { fill: currentColor; }
svg text { fill: var(--soft); font-size: 11px; text-anchor: middle; }
svg .up { text-anchor: end; } svg .axis { fill: var(--text); }
.grid { stroke: #8884; } .mark { stroke: var(--soft); stroke-dasharray: 3 3; }
.line { fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); }
img { max-width: 100%; min-width: min(100%, 8rem); image-rendering: pixelated; }
</style>
$body
<p>Written $time. Curves have a value for each epoch; dashed lines show where a run was resumed.</p>
</html>
""")


def write_report(directory: Union[str, Sequence[str]], out: Optional[str] = None) -> str:
    """Writes a page of HTML about the run in a log directory, and returns its path.

    The page needs no other file. It has the result and the circumstances of the run, curves of all
    scalars, the time report, pictures, and the end of the log.

    Args:
      directory: the log directory; or several, whose curves are drawn in the same charts.
      out: path of the page; by default `report.html` in the directory, or in the one that has all
        of several. A path that ends with `.png` gets a picture of the curves, by matplotlib.

    Raises:
      OSError: there is no such directory, or the page cannot be written.
      ValueError: the directory has no file of a run.
    """
    paths = [directory] if isinstance(directory, (str, os.PathLike)) else directory
    paths = [os.path.abspath(path) for path in paths]
    above = os.path.commonpath([os.path.dirname(path) for path in paths])
    runs = {os.path.relpath(path, above): _Run(path) for path in paths}
    out = os.fspath(out or os.path.join(above if len(paths) > 1 else paths[0], "report.html"))
    charts = charts_of({name: run.epochs for name, run in runs.items()})
    if out.endswith(".png"):
        write_png(out, charts)
        return out
    title, body = escape(", ".join(runs)), "\n".join(_body(runs, charts))
    with open(out, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(_PAGE.substitute(title=title, body=body, time=utc_now()))
    return out


class _Run:
    """What a log directory tells, where any file may be missing or cut off."""

    def __init__(self, directory: str) -> None:
        files = sorted(os.listdir(directory))
        if not {"run.json", "stats.json", "log.log", "checkpoint"} & {*files}:
            raise ValueError(
                f"{directory} has no run.json, stats.json or log.log: give the log directory of a "
                "training, such as train_log/NAME."
            )
        self.notes: List[str] = []  # what is not shown
        self.record: Dict[str, Any] = {}
        self.epochs: List[Epoch] = []
        try:
            self.record = read_record(directory) or {}
        except ValueError as error:
            self.notes.append(str(error))
        try:
            self.epochs.extend(read_epochs(directory))
        except FileNotFoundError:
            pass
        except ValueError as error:
            self.notes.append(str(error))
        self.attempts = [{"result": LOST, **attempt} for attempt in self.record.get("attempts", [])]
        if self.attempts and self.attempts[-1]["result"] == LOST and is_locked(directory):
            self.attempts[-1]["result"] = "running"
        self.log = "".join(_last_lines(directory, "log.log"))
        self.time = ""  # the last time report
        for line in _last_lines(directory, "time_reports.jsonl"):
            with suppress(ValueError):  # the last line may be cut off
                self.time = json.loads(line)["text"]
        matches = [match for match in map(_PICTURE.match, files) if match]
        matches.sort(key=lambda match: int(match.group(2) or 0))
        newest = sorted({match.group(1, 3): match.group() for match in matches}.values())
        self.pictures = [os.path.join(directory, name) for name in newest[:_MOST_PICTURES]]


def _last_lines(directory: str, name: str) -> Sequence[str]:
    path = os.path.join(directory, name)
    with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return deque(file, _LINES)
    return ()


def _body(runs: Dict[str, _Run], groups: Dict[str, Charts]) -> Iterator[str]:
    is_one = len(runs) == 1
    for i, (name, run) in enumerate(runs.items()):
        key = "" if is_one else f'<span class="c{i % COLOURS}">&#9632;</span> '
        yield f"<h1>{key}{escape(name)}</h1>\n<p>{_result(run)}</p>"
        yield from (f'<p class="note">{escape(note)}</p>' for note in run.notes)
        facts = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in _facts(run).items())
        yield _section("Circumstances", f"<dl>{facts}</dl>" if facts else "", is_one)
    steps: List[Any] = [epoch["global_step"] for run in runs.values() for epoch in run.epochs]
    resumed = [attempt.get("training") or {} for attempt in run.attempts[1:] if is_one]
    marks = [training.get("first_step") or 0 for training in resumed]
    for group, charts in groups.items():
        cards = [card(*chart, (min(steps), max(steps)), marks) for chart in charts.items()]
        yield _section(f"{group} ({len(cards)})", "".join(cards), group != STATISTICS, "cards")
    for name, run in runs.items():
        suffix = "" if is_one else f" ({escape(name)})"
        yield _section(f"Where the time goes{suffix}", escape(run.time))
        yield _section(f"Pictures{suffix}", "".join(map(_picture, run.pictures)), css="cards")
        yield _section(f"The end of the log{suffix}", escape(run.log), is_one, "log")


def _section(title: str, html: str, is_open: bool = True, css: str = "") -> str:
    head = f"<details{' open' * is_open}><summary>{title}</summary>"
    return f'{head}<div class="{css}">{html}</div></details>' if html else ""


def _picture(path: str) -> str:
    name = os.path.basename(path)
    kind = os.path.splitext(name)[1][1:].lower().replace("jpg", "jpeg")
    with open(path, "rb") as file:
        content = base64.b64encode(file.read()).decode("ascii")
    uri = f"data:image/{kind};base64,{content}"
    return f'<div class="card"><img src="{uri}" alt=""><p>{escape(name)}</p></div>'


def _result(run: _Run) -> str:
    """How the run ended, and how far it came."""
    if not run.attempts:
        return "No run.json tells how this run ended."
    last, seconds = run.attempts[-1], sum(attempt.get("seconds", 0) for attempt in run.attempts)
    facts = {name: last.get(name) for name in ("epoch", "step", "checkpoint", "best")}
    facts["time"] = humanize_time_delta(seconds) if seconds else ""
    result, message, text = map(escape, (last["result"], last.get("message") or "", _text(facts)))
    return f'<span class="badge {result}">{result}</span> <b>{message}</b> {text}'


def _facts(run: _Run) -> Dict[str, str]:
    """What was run where, in the last attempt."""
    if not run.attempts:
        return {}
    last = run.attempts[-1]
    names = ("started", "step", "result", "message")
    attempts = [{name: attempt.get(name) for name in names} for attempt in run.attempts]
    sizes = [int(np.prod(shape)) for _, shape, _ in run.record.get("parameters", [])]
    training = dict(last.get("training") or {})
    seed = training.pop("seed", None)
    facts = {
        "command": " ".join(map(shlex.quote, last.get("command") or [])),
        **{name: _text(last.get(name)) for name in _FACTS},
        "training": _text(training),
        "attempts": _text(attempts) if len(attempts) > 1 else "",
        "parameters": f"{len(sizes)} variables, {sum(sizes):,} numbers" if sizes else "",
        "seed": "not fixed: this run cannot be repeated exactly" if seed is None else str(seed),
    }
    return {name.capitalize(): escape(text) for name, text in facts.items() if text}


def _text(value: Any, name: str = "") -> str:
    """A part of a record without what is empty, such as `commit 0a1b, branch main`."""
    if isinstance(value, dict):
        texts = {name: _text(part, name) for name, part in value.items() if part}
        return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return size_text(value) if name == "memory" else str(value or "")
