"""The table of docs/performance.md, made from the kept results; `_chart.py` draws them."""

import sys
from collections import Counter
from typing import Dict, NamedTuple

from figures import FIGURES

BEGIN = "<!-- measured: written by make bench, do not edit -->"
END = "<!-- measured: end -->"
HEAD = "| # | figure | measured | target | held against (medians) |\n|---|---|---|---|---|\n"


class Row(NamedTuple):
    """A row of the table, as docs/performance/results.json keeps it."""

    what: str  # is measured, in a few words; tells apart the rows of one figure
    value: float  # the median of the rounds
    unit: str  # of the value; empty for a ratio
    target: str  # as ">= 0.95" or "<= 20"; empty where there is none
    medians: Dict[str, float]  # of the sides, ours first
    medians_unit: str

    def verdict(self):
        """The target, and whether the value reaches it."""
        sign, _, bound = self.target.partition(" ")
        if not self.target:
            return ""
        met = {">=": self.value >= float(bound), "<=": self.value <= float(bound)}[sign]
        return f"{self.target}: {'yes' if met else '**no**'}"

    def cells(self):
        """What the table has of it, but for the name of the figure."""
        measured = f"{number(self.value)} {self.unit}".strip()
        others = medians_text(self.medians, self.medians_unit) if len(self.medians) > 1 else ""
        return [self.what, measured, self.verdict(), others]


def say(text, end="\n"):
    """Prints a line at once."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def number(value):
    """Three digits of a number, and all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def medians_text(numbers, unit):
    """Numbers by name as text."""
    return f"{', '.join(f'{name} {number(each)}' for name, each in numbers.items())} {unit}"


def line(*cells):
    """A line of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def markdown(results):
    """What was measured on, and the table, as Markdown; `results` are as `run.py` keeps them."""
    runs = {name: results["runs"][name] for name in FIGURES if name in results["runs"]}
    day = Counter(run["date"] for run in runs.values()).most_common(1)[0][0] if runs else ""
    others = [f", {name} {run['date']}" for name, run in runs.items() if run["date"] != day]
    versions = sorted({each for text in results["versions"].values() for each in text.split(", ")})
    table = HEAD
    for name, run in runs.items():
        for row in (Row(**fields) for fields in run["rows"]):
            what, *cells = row.cells()
            where = FIGURES[name].where
            table += line(name.partition("-")[0], f"{what}, {where}" if where else what, *cells)
    return f"{results['machine']}; {day}{''.join(others)}.\n\n{', '.join(versions)}.\n\n{table}"


def insert(page, text):
    """The page with what is between the two markers replaced; ValueError unless both are there."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}"
