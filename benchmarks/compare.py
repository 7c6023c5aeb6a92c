"""Compares the speed of this checkout with another one, in pairs that alternate in one run.

    python benchmarks/compare.py --baseline /path/to/other/checkout --only R5,R6,R7,R9

Each measurement is a process that runs a figure of this checkout, `run.py FIGURE --alone`, on the
library and the examples of one of them: so the figures that need no peer can be compared, and of
the others this project's own rate (R2: updates/s of the whole run). A pair measures both, and each
pair begins with the other side. Prints a line per pair and row, then a table. "speed" is how many
times as fast as the baseline this checkout is: the median of the pairs, with the lowest and the
highest pair. Other flags go to the figures: `--only R8 --kinds small`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from _contest import ratio
from _programs import HERE, ROOT
from _report import parse, say
from figures import FIGURES

LIMIT = 1800  # seconds; a process that takes longer counts as hanging
# Flags of a measurement; two or more rounds in a process where they take no time.
FLAGS = {
    "R1": ["--pairs", "1", "--steps", "200"],
    "R2": ["--pairs", "1", "--steps", "200"],
    "R4": ["--pairs", "3", "--seconds", "2", "--players", "8"],
    "R5": ["--pairs", "5"],
    "R6": ["--pairs", "5"],
    "R7": ["--pairs", "5", "--frames", "100000"],
    "R9": ["--pairs", "11"],
}
DEFAULT = ["--pairs", "1"]


def is_higher_better(row):
    """Whether a higher value of a result is a better one."""
    return row.unit.endswith("/s") or not row.unit and not row.target.startswith("<=")


def measure(checkout, name, flags=()):
    """Runs a figure on a checkout; returns its rows.

    Raises:
      RuntimeError: the figure failed, or printed no result.
      subprocess.TimeoutExpired: it took too long, and was killed.
    """
    command = [str(HERE / "run.py"), name, "--alone", *FLAGS.get(name, DEFAULT), *flags]
    done = subprocess.run(
        [sys.executable, *command],
        env=dict(os.environ, BENCH_CHECKOUT=str(checkout), PYTHONPATH=str(checkout)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    rows = parse(done.stdout)
    if done.returncode or not rows:
        raise RuntimeError(f"{name} on {checkout} ended with {done.returncode}:\n{done.stdout}")
    return rows


def compare(name, baseline, pairs, measure=measure):
    """Measures pairs, with lines for each; returns the rows of the table."""
    found = {}
    for number in range(pairs):
        begin, order = time.perf_counter(), [baseline, ROOT]
        rows = {side: measure(side, name) for side in order[:: -1 if number % 2 else 1]}
        took = time.perf_counter() - begin
        for theirs, ours in zip(rows[baseline], rows[ROOT]):
            values = [ours.value, theirs.value]
            speed = ratio(*values if is_higher_better(ours) else values[::-1])
            key = ours.what, ours.unit
            found.setdefault(key, []).append((theirs.value, ours.value, speed))
            say(
                f"{name} pair {number + 1}/{pairs}: baseline {theirs.value:.4g}, this "
                f"{ours.value:.4g}, speed {speed:.3f}: {ours.what} ({took:.0f} s, load "
                f"{os.getloadavg()[0]:.1f})"
            )
    return [_row(name, *key, rounds) for key, rounds in found.items()]


def _row(name, what, unit, rounds):
    speeds = [speed for _, _, speed in rounds]
    theirs, ours, speed = map(statistics.median, zip(*rounds))
    what = f"{what}, {unit}" if unit else what
    return (
        f"| {name} | {what} | {theirs:.4g} | {ours:.4g} | {speed:.3f} "
        f"| {min(speeds):.3f} - {max(speeds):.3f} |"
    )


def main():
    """Compares and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--baseline", required=True, type=Path, help="path of the other checkout")
    parser.add_argument("--only", default="R1,R2,R4,R5,R6,R7,R8,R9", help="default: %(default)s")
    parser.add_argument("--pairs", type=int, default=5)
    args, flags = parser.parse_known_args()
    baseline, wanted = args.baseline.resolve(), args.only.split(",")
    unknown = set(wanted) - set(FIGURES)
    if unknown or not (baseline / "tensorpack").is_dir() or baseline == ROOT:
        parser.error(f"no such figure: {unknown}" if unknown else f"{baseline}: no other checkout")

    def measured(checkout, name):
        return measure(checkout, name, flags)

    table = [row for name in wanted for row in compare(name, baseline, args.pairs, measured)]
    say("\n| # | figure | baseline | this | speed | lowest - highest |\n|---|---|---|---|---|---|")
    say("\n".join(table))


if __name__ == "__main__":
    main()
