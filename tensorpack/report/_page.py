"""Puts the page together, and writes it. All text of a run is escaped."""

import errno
import os
from html import escape
from typing import Any, List, Optional

from tensorpack.runs.record import utc_now
from tensorpack.utils.atomic import file_behind, write_atomic

from ._curves import curves_of
from ._facts import attempts_of, facts_of, headline_of
from ._read import Run, read_run
from ._tables import files_of, log_of, parameters_of, samples_of, times_of

# Nothing is loaded and nothing runs, whatever gets into the page.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

# Light or dark as the reader's system is, wide or narrow as the screen.
_STYLE = """
:root { color-scheme: light dark; --back: #fff; --card: #f6f7f9; --text: #1c2024; --soft: #5d6670;
  --edge: #dcdfe4; --now: #1264c4; --earlier: #a8adb5; --mark: #b06a00; --good: #0a7040;
  --bad: #b3261e; --wait: #c77700; --call: #8a4fc0; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1d2125; --text: #e4e7ea;
  --soft: #9aa3ad; --edge: #343a41; --now: #6cb0ff; --earlier: #666e77; --mark: #e0a040;
  --good: #4cc38a; --bad: #ff8a80; --wait: #e0a040; --call: #c59cf0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 78rem; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; border-bottom: 1px solid var(--edge); }
h3 { font-size: 1rem; margin: 1.2rem 0 .5rem; color: var(--soft); }
a { color: var(--now); }
code, pre { font: .86em/1.45 ui-monospace, Menlo, Consolas, monospace; }
.result { margin: .5rem 0; font-size: 1.1rem; overflow-wrap: anywhere; }
.badge { padding: .1em .6em; border-radius: 1em; border: 1px solid; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--wait); }
.soft { color: var(--soft); }
.notes { border-left: 3px solid var(--wait); padding-left: .8rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr));
  gap: .8rem; }
.card { background: var(--card); border: 1px solid var(--edge); border-radius: 6px;
  padding: .6rem; min-width: 0; margin: 0; }
.card b { overflow-wrap: anywhere; } .card p { margin: 0; color: var(--soft); font-size: .85em; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; text-anchor: middle; }
svg text.up { text-anchor: end; }
.grid { stroke: var(--edge); } .mark { stroke: var(--mark); stroke-dasharray: 3 3; }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.line.now { stroke: var(--now); } .line.earlier { stroke: var(--earlier); }
.line.raw { stroke-opacity: .3; stroke-width: 1; }
.dot.now { fill: var(--now); } .dot.earlier { fill: var(--earlier); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92em; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--edge);
  white-space: nowrap; } th { color: var(--soft); font-weight: 500; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--card); border: 1px solid var(--edge); border-radius: 6px; padding: .7rem;
  overflow-x: auto; }
.bar { display: flex; height: 1.1rem; border-radius: 4px; overflow: hidden; margin: .5rem 0; }
.bar i { display: block; } .key i { display: inline-block; width: .8em; height: .8em; }
.wait { background: var(--wait); } .step { background: var(--now); }
.call { background: var(--call); }
.key span { margin-right: 1.2em; white-space: nowrap; }
figure img { max-width: 100%; min-width: min(100%, 8rem); image-rendering: pixelated; }
figcaption { font-size: .85em; overflow-wrap: anywhere; color: var(--soft); }
summary { cursor: pointer; color: var(--soft); margin: .5rem 0; }
@media (max-width: 36rem) { body { padding: .8rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } }
"""


def write_report(directory: str, out: Optional[str] = None) -> str:
    """Writes what a log directory has to tell as one page of HTML, which needs no other file.

    It has the result and the circumstances of the run, curves of all scalars, the time report, the
    table of parameters, images, the end of the log, and links to the files of the directory. What
    is missing or damaged there is left out, and said.

    Args:
      directory: the log directory.
      out: path of the page, or a link to it; `report.html` in the directory by default.

    Returns:
      the path of the page.

    Raises:
      ValueError: there is no such directory, or it has no file of a run.
    """
    path = os.path.join(directory, "report.html") if out is None else out
    target = file_behind(path)
    run = read_run(directory)
    links_from = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(links_from):
        raise FileNotFoundError(errno.ENOENT, "No such folder", links_from)
    write_atomic(target, _page_of(run, links_from).encode("utf-8", "backslashreplace"))
    return path


def _page_of(run: Run, links_from: str) -> str:
    """Returns the page about a run, for the folder where its links begin."""
    title = escape(os.path.basename(run.directory) or run.directory)
    sections: List[Any] = [
        ("", facts_of(run)),
        ("Attempts", attempts_of(run)),
        ("Curves", curves_of(run)),
        ("Where the time goes", times_of(run)),
        ("Samples", samples_of(run, links_from)),
        ("Parameters", parameters_of(run)),
        ("The end of the log", log_of(run)),
        ("Files", files_of(run, links_from)),
    ]
    body = "\n".join(
        f"<section>{f'<h2>{name}</h2>' if name else ''}\n{text}</section>"
        for name, text in sections
        if text
    )
    notes = "".join(f"<p>{escape(each)}</p>" for each in run.troubles)
    notes = f'<div class="notes">{notes}</div>\n' if notes else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{title}</h1>\n{headline_of(run)}</header>\n{notes}{body}\n"
        f'<footer><p class="soft">Written {utc_now()}.</p></footer>\n</body>\n</html>\n'
    )
