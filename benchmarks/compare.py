"""Compares the speed of this checkout with another one, in pairs that alternate in one run.

    python benchmarks/compare.py --baseline /path/to/other/checkout --only R5,R6,R7,R9

Each measurement is a process that runs the checkout's own benchmark script, with PYTHONPATH set to
that checkout. A pair measures both, and each pair begins with the other side. The figures that need
no peer can be compared: R1 in updates/s of the whole run (which R2 and R3 measure too), R8 by this
project's own rate. Prints a line per pair, then a table. "speed" is how many times as fast as the
baseline this checkout is: the median of the pairs, with the lowest and the highest pair.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Tuple

from _report import parse, say

THIS = Path(__file__).resolve().parents[1]
LIMIT = 900  # seconds; a process that takes longer counts as hanging
RATE = re.compile(r"^(?:updates|datapoints)/s: ([0-9.]+)", re.MULTILINE)
OWN_RATE = "import r8_dataflow as r8; print('datapoints/s:', r8.ours('{}', 2, {seconds}))"


class Figure(NamedTuple):
    """One measurement that both checkouts can make.

    Attributes:
      what: what is measured, with its unit.
      command: arguments of the interpreter, which runs in the checkout's benchmarks folder.
      higher: True for a rate, False for a time.
    """

    what: str
    command: Tuple[str, ...]
    higher: bool


def _own_rate(kind):
    return ("-c", OWN_RATE.format(kind, seconds=3.0))


FIGURES = {
    "R1": Figure("whole DQN run, it/s", ("dqn_run.py", "--steps", "200"), True),
    "R1-acting": Figure(
        "whole DQN run, exploration 0.1, it/s",
        ("dqn_run.py", "--steps", "150", "--exploration", "0.1"),
        True,
    ),
    "R2-bf16": Figure(
        "whole DQN run in bf16, it/s", ("dqn_run.py", "--steps", "300", "--precision", "bf16"), True
    ),
    "R4": Figure(
        "filling, 8 players / bare environments",
        ("r4_filling.py", "--players", "8", "--pairs", "3", "--seconds", "2"),
        True,
    ),
    "R5": Figure("step over the bare callable, us", ("r5_step.py", "--pairs", "5"), False),
    "R6": Figure(
        "step through QueueInput / bare loop", ("r6_queue_step.py", "--pairs", "5"), False
    ),
    "R7": Figure(
        "sampling from 100,000 frames, ms",
        ("r7_sampling.py", "--rounds", "5", "--frames", "100000"),
        False,
    ),
    "R8-small": Figure("28 kB datapoints, 2 processes, dp/s", _own_rate("small"), True),
    "R8-large": Figure("9.6 MB datapoints, 2 processes, dp/s", _own_rate("large"), True),
    "R8-ragged": Figure("pictures with boxes, 2 processes, dp/s", _own_rate("ragged"), True),
    "R8-jpegs": Figure("JPEGs decoded, 2 processes, dp/s", _own_rate("jpegs"), True),
    "R9": Figure("import beyond the interpreter, ms", ("r9_import.py", "--pairs", "11"), False),
}


def measure(checkout, figure):
    """Runs the figure's command in a checkout; returns the number.

    Raises:
      RuntimeError: the command failed, or printed no figure.
      subprocess.TimeoutExpired: it took too long, and was killed.
    """
    done = subprocess.run(
        [sys.executable, *figure.command],
        cwd=str(checkout / "benchmarks"),
        env=dict(os.environ, PYTHONPATH=str(checkout)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    rows = [row.value for row in parse(done.stdout)]
    values = rows or [float(text) for text in RATE.findall(done.stdout)]
    if done.returncode or not values:
        raise RuntimeError(
            f"{' '.join(figure.command)} in {checkout} ended with {done.returncode}:\n{done.stdout}"
        )
    return values[0]


def compare(name, figure, baseline, pairs, measure=measure):
    """Measures pairs, with a line for each; returns the row of the table."""
    rows = []
    for number in range(pairs):
        begin, order = time.perf_counter(), [baseline, THIS]
        found = {side: measure(side, figure) for side in order[:: -1 if number % 2 else 1]}
        theirs, ours = found[baseline], found[THIS]
        speed = ours / theirs if figure.higher else theirs / ours
        rows.append((theirs, ours, speed))
        took = time.perf_counter() - begin
        say(
            f"{name} pair {number + 1}/{pairs}: baseline {theirs:.4g}, this {ours:.4g}, "
            f"speed {speed:.3f} ({took:.0f} s, load {os.getloadavg()[0]:.1f})"
        )
    speeds = [row[2] for row in rows]
    theirs, ours, speed = (statistics.median(column) for column in zip(*rows))
    return (
        f"| {name} | {figure.what} | {theirs:.4g} | {ours:.4g} | {speed:.3f} "
        f"| {min(speeds):.3f} - {max(speeds):.3f} |"
    )


def main():
    """Compares and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--baseline", required=True, type=Path, help="path of the other checkout")
    parser.add_argument("--only", default="", metavar="R5,R8-jpegs", help="these (default: all)")
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    baseline, wanted = args.baseline.resolve(), [w.lower() for w in args.only.split(",") if w]
    keys = {name: {name.lower(), name.lower().partition("-")[0]} for name in FIGURES}
    chosen = [name for name in FIGURES if not wanted or keys[name].intersection(wanted)]
    unknown = [w for w in wanted if not any(w in found for found in keys.values())]
    if unknown or not (baseline / "benchmarks").is_dir() or baseline == THIS:
        parser.error(f"no such figure: {unknown}" if unknown else f"{baseline}: no other checkout")
    table = [compare(name, FIGURES[name], baseline, args.pairs) for name in chosen]
    say("\n| # | figure | baseline | this | speed | lowest - highest |\n|---|---|---|---|---|---|")
    say("\n".join(table))


if __name__ == "__main__":
    main()
