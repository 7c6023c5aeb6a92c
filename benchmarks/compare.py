"""Compares the speed of this checkout with another one, in pairs that alternate in one run.

    python benchmarks/compare.py --baseline /path/to/other/checkout --only R5,R6,R7,R9

Each measurement is a process that runs a figure of this checkout, `run.py FIGURE --alone`, on the
library and the examples of one of them: so the figures that need no peer can be compared, and of
the others this project's own rate (R2: updates/s of the whole run). Each pair begins with the other
side. "speed" is how many times as fast as the baseline this checkout is: the median of the pairs,
with the lowest and the highest pair. Other flags go to the figures: `--only R8 --kinds small`.
"""

import argparse
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from _programs import HERE, ROOT
from _report import parse, say
from figures import FIGURES

LIMIT = 1800  # seconds; a process that takes longer counts as hanging
SHORT = 2  # minutes; a figure below it has all of its rounds in each measurement


def is_higher_better(row):
    """Whether a higher value of a result is a better one."""
    return row.unit.endswith("/s") or not row.unit and not row.target.startswith("<=")


def measure(checkout, name, flags=()):
    """Runs a figure on a checkout; returns its rows.

    Raises:
      RuntimeError: the figure failed, or printed no result.
      subprocess.TimeoutExpired: it took too long, and was killed.
    """
    rounds = FIGURES[name].pairs if FIGURES[name].minutes < SHORT else 1
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), name, "--alone", "--pairs", str(rounds), *flags],
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
        order = [baseline, ROOT][:: -1 if number % 2 else 1]
        rows = {side: measure(side, name) for side in order}
        load = os.getloadavg()[0]
        for other, own in zip(rows[baseline], rows[ROOT]):
            theirs, ours = other.value, own.value
            speed = ours / theirs if is_higher_better(own) else theirs / ours
            what = f"{own.what}, {own.unit}" if own.unit else own.what
            found.setdefault(what, []).append((theirs, ours, speed))
            say(
                f"{name} pair {number + 1}/{pairs}: baseline {theirs:.4g}, this {ours:.4g}, "
                f"speed {speed:.3f} ({what}; load {load:.1f})"
            )
    table = []
    for what, rounds in found.items():
        theirs, ours, speeds = zip(*rounds)
        cells = [f"{statistics.median(each):.4g}" for each in (theirs, ours)]
        cells += [f"{statistics.median(speeds):.3f}", f"{min(speeds):.3f} - {max(speeds):.3f}"]
        table.append(f"| {name} | {what} | {' | '.join(cells)} |")
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
    baseline, wanted = args.baseline.resolve(), args.only.split(",")
    unknown = set(wanted) - set(FIGURES)
    if unknown or not (baseline / "tensorpack").is_dir() or baseline == ROOT:
        parser.error(f"no such figure: {unknown}" if unknown else f"{baseline}: no other checkout")
    measured = partial(measure, flags=flags)
    table = [row for name in wanted for row in compare(name, baseline, args.pairs, measured)]
    say("\n| # | figure | baseline | this | speed | lowest - highest |\n|---|---|---|---|---|---|")
    say("\n".join(table))


if __name__ == "__main__":
    main()
