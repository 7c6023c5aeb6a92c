"""Results of benchmarks: the line a figure prints, and the table in docs/performance.md.

A figure prints each row as a line (`report`), which `run.py` and `compare.py` read (`parse`).
`merge`, `markdown` and `insert` turn results into text and touch no file; `_chart.py` draws them.
"""

import json
import sys
from collections import Counter
from typing import NamedTuple

PREFIX = "RESULT "
BEGIN = "<!-- measured: written by make bench, do not edit -->"
END = "<!-- measured: end -->"
NOT_MEASURED = "not measured"  # how the status of a job that could not be run begins
HEAD = "| # | figure | measured | target | held against (medians) |\n|---|---|---|---|---|\n"
DIGITS = 3  # that count


class Measured(NamedTuple):
    """A row of the table in docs/performance.md."""

    figure: str  # its name, as "R5"
    what: str  # was measured, in a few words; tells apart the rows of one figure
    value: float  # for a ratio, the median of the pairs
    unit: str = ""  # of the value; empty for a ratio
    target: str = ""  # as ">= 0.95" or "<= 20"; empty where there is none
    peer: str = ""  # what it was compared with, and its number, as "tensorpack 0.11: 7.0 it/s"
    note: str = ""  # what a reader must know to judge it, as "prototype"; empty mostly


def is_met(measured):
    """Whether the value reaches the target; None where there is no target.

    Raises:
      ValueError: the target is neither ">= NUMBER" nor "<= NUMBER".
    """
    if not measured.target:
        return None
    sign, _, bound = measured.target.partition(" ")
    if sign not in (">=", "<="):
        raise ValueError(f"A target is '>= NUMBER' or '<= NUMBER', not {measured.target!r}.")
    return measured.value >= float(bound) if sign == ">=" else measured.value <= float(bound)


def say(text, end="\n"):
    """Prints a line at once."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def report(*measured):
    """Writes each `Measured` as a line of its own; call it last."""
    for one in measured:
        is_met(one)  # a wrong target is found where it was written
        say(PREFIX + json.dumps(one._asdict(), sort_keys=True))


def parse(text):
    """The figures in what a benchmark printed, a list of `Measured`; passes over other lines."""
    lines = [line for line in text.splitlines() if line.startswith(PREFIX)]
    return [Measured(**json.loads(line[len(PREFIX) :])) for line in lines]


def merge(old, new):
    """The results to keep, as {"machine": text, "jobs": {name: job}}, or {} for none.

    New ones take the place of old ones, but for what was not measured now. Results of another
    machine are left out: one table is of one machine.
    """
    jobs = dict(old["jobs"]) if old.get("machine") == new["machine"] else {}
    for name, job in new["jobs"].items():
        if name not in jobs or not job["status"].startswith(NOT_MEASURED):
            jobs[name] = job
    return {"machine": new["machine"], "jobs": jobs}


def markdown(results, order):
    """The table and what it was measured on, as Markdown.

    Rows that have neither a target nor a peer are left out.

    Args:
      results: as from `merge`; a job is made by `run.result`.
      order: names of jobs; those without a result are left out.
    """
    jobs = [results["jobs"][name] for name in order if name in results["jobs"]]
    dates = Counter(job["date"] for job in jobs)
    day = max(dates, key=dates.get)
    others = {job["figure"]: job["date"] for job in jobs if job["date"] != day}
    measured = ", ".join([day, *(f"{figure} {date}" for figure, date in others.items())])
    used = Counter()
    for job in jobs:
        used.update(each for text in job["versions"].values() for each in text.split(", "))
    lines = [f"{results['machine']}; {measured}.", "", f"{', '.join(sorted(used))}.", "", HEAD]
    return "\n".join(lines) + "".join(f"{row}\n" for job in jobs for row in _rows(job)).strip()


def insert(page, text):
    """The page with what is between the two markers replaced.

    Raises:
      ValueError: the page does not have both markers, once each, in this order.
    """
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + old + after:
        raise ValueError(f"The page must have the lines {BEGIN!r} and {END!r}, once each.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _rows(job):
    if job["status"] != "ok":
        yield _row(job["figure"], _at(job["title"], job), job["status"], "", "")
        return
    for one in (Measured(**fields) for fields in job["rows"]):
        if not one.target and one.unit:
            continue
        what = f"{one.what} ({one.note})" if one.note else one.what
        measured = f"{number(one.value)} {one.unit}".strip()
        target = f"{one.target}: {'yes' if is_met(one) else '**no**'}" if one.target else ""
        peer = one.peer.replace(f" {one.peer.rpartition(' ')[2]},", ",")  # the unit only once
        yield _row(one.figure, _at(what, job), measured, target, peer)


def _at(what, job):
    return f"{what}, {job['where']}" if job["where"] else what


def _row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def number(value):
    """Three digits of a number, and all of those before the point."""
    if abs(value) >= 10**DIGITS:
        return f"{value:,.0f}"
    return f"{value:.{DIGITS}g}"
