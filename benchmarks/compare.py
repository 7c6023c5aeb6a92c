"""Compares the speed of this checkout with another one, in pairs that alternate in one run.

    python benchmarks/compare.py --baseline /path/to/other/checkout --only R5,R6,R7,R9

Each measurement is a process that runs a figure of this checkout, `run.py FIGURE --alone`, on the
library and the examples of one of them. What counts is the number of our side of each row (R5: us
of a step of the trainer), so that figures without peers can be compared, and of the others what
needs none. Each pair begins with the other side. "speed" is how many times as fast as the baseline
this checkout is: the median of the pairs, with the lowest and the highest pair. Other flags go to
the figures: `--only R8 --kinds small`.
"""

import argparse
import os
import statistics
from functools import partial
from pathlib import Path

from _programs import ROOT
from _report import line, say
from figures import FIGURES
from run import rows_of

LIMIT = 1800  # seconds; a process that takes longer counts as hanging
SHORT = 2  # minutes; a figure below it has all of its rounds in each measurement


def measure(checkout, name, flags=()):
    """Runs a figure on a checkout; returns our side: "what, unit" -> number."""
    rounds = FIGURES[name].pairs if FIGURES[name].minutes < SHORT else 1
    argv = ["--alone", "--pairs", rounds, *flags]
    rows = rows_of(name, *argv, checkout=checkout, limit=LIMIT)
    return {f"{row.what}, {row.medians_unit}": [*row.medians.values()][0] for row in rows}


def compare(name, baseline, pairs, measure=measure):
    """Measures pairs, with lines for each; returns the rows of the table."""
    rounds = {}
    for index in range(pairs):
        order = [baseline, ROOT][:: -1 if index % 2 else 1]
        numbers = {side: measure(side, name) for side in order}
        load = os.getloadavg()[0]
        for what, this in numbers[ROOT].items():
            other = numbers[baseline][what]
            speed = this / other if what.endswith("/s") else other / this
            rounds.setdefault(what, []).append((other, this, speed))
            say(
                f"{name} pair {index + 1}/{pairs}: baseline {other:.4g}, this {this:.4g}, "
                f"speed {speed:.3f} ({what}; load {load:.1f})"
            )
    table = []
    for what, columns in ((what, list(zip(*each))) for what, each in rounds.items()):
        medians = [statistics.median(column) for column in columns]
        spread = f"{min(columns[2]):.3f} - {max(columns[2]):.3f}"
        table.append(line(name, what, *("{:.4g} {:.4g} {:.3f}".format(*medians).split()), spread))
    return table


def main():
    """Compares and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--baseline", required=True, type=Path, help="path of the other checkout")
    parser.add_argument("--only", default="R1,R2,R4,R5,R6,R7,R8,R9", help="default: %(default)s")
    parser.add_argument("--pairs", type=int, default=5)
    args, flags = parser.parse_known_args()
    baseline, names = args.baseline.resolve(), args.only.split(",")
    unknown = set(names) - set(FIGURES)
    if unknown or not (baseline / "tensorpack").is_dir() or baseline == ROOT:
        parser.error(f"no such figure: {unknown}" if unknown else f"{baseline}: no other checkout")
    measured = partial(measure, flags=flags)
    table = [row for name in names for row in compare(name, baseline, args.pairs, measured)]
    say("\n| # | figure | baseline | this | speed | lowest - highest |\n|---|---|---|---|---|---|")
    say("".join(table))


if __name__ == "__main__":
    main()
