"""R8: datapoints from worker processes, against torch's DataLoader and tensorpack 0.11.

    python benchmarks/r8_dataflow.py [--pairs 5] [--kinds small,large,ragged,jpegs]

Each kind of datapoint with one process and with two. Needs `make bench-peers`.
"""

import argparse
import os
import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from _programs import output_of, peer_python
from _report import Measured, report, say
from _stream import BATCH, KINDS, count_per_second, decode, endless, pictures

from tensorpack.dataflow import (
    DataFlow,
    DataFromList,
    MultiProcessMapAndBatchData,
    MultiProcessRunnerZMQ,
    RepeatedData,
)

HERE = Path(__file__).resolve().parent
RATE = re.compile(r"datapoints/s: ([0-9.]+)")
PROCESSES = (1, 2)
BIG_MB = 64 * 224 * 224 * 3 / 1e6
# What the targets are about, with two processes.
TARGETS = {"large": ("ratio", ">= 2"), "small": ("rate", ">= 50000")}
NAMES = {
    "small": "28 kB datapoints",
    "large": "9.6 MB datapoints",
    "ragged": "pictures of all heights, with boxes",
    "jpegs": "JPEGs, decoded and batched",
}


class Endless(DataFlow):
    """The same datapoints again and again."""

    def __init__(self, kind):
        self._kind = kind

    def __iter__(self):
        return endless(self._kind)


def decoded(datapoint):
    """One picture."""
    return [decode(datapoint[0])]


def ours(kind, processes, seconds):
    """Datapoints per second of this project."""
    if kind == "jpegs":
        source = RepeatedData(DataFromList([[jpeg] for jpeg in pictures()], shuffle=False), -1)
        flow, each = MultiProcessMapAndBatchData(source, processes, decoded, BATCH), BATCH
    else:
        flow, each = MultiProcessRunnerZMQ(Endless(kind), processes), 1
    flow.reset_state()
    try:
        return count_per_second((datapoint[0] for datapoint in flow), seconds, each)
    finally:
        flow.close()


def peer(environment, script, kind, processes, seconds):
    """Datapoints per second of another library."""
    arguments = ["--kind", kind, "--processes", processes, "--seconds", seconds]
    text = output_of(HERE / "peers" / script, *arguments, python=peer_python(environment))
    return float(RATE.search(text).group(1))


def measure(kind, processes, rounds, seconds):
    """Prints a row a round; returns the medians of each, and of the ratio to the better peer."""
    rates = {"run": [], "torch": [], "tensorpack 0.11": []}
    for number in range(rounds):
        rates["run"].append(ours(kind, processes, seconds))
        for name, environment, script in (
            ("torch", "torch", "torch_loader.py"),
            ("tensorpack 0.11", "tensorpack-0.11", "tensorpack_runner.py"),
        ):
            rates[name].append(peer(environment, script, kind, processes, seconds))
        row = ", ".join(f"{name} {column[-1]:.0f}/s" for name, column in rates.items())
        say(f"{kind} x{processes} {number}: {row} (load {os.getloadavg()[0]:.1f})")
    mine, *others = rates.values()
    ratios = [own / max(theirs) for own, *theirs in zip(mine, *others)]
    medians = {name: statistics.median(column) for name, column in rates.items()}
    return medians, statistics.median(ratios)


def rows(kind, processes, medians, ratio):
    """What is reported of one kind."""
    what = f"{NAMES[kind]}, {processes} process{'es' if processes > 1 else ''}"
    held = ", ".join(f"{name} {rate:.0f}/s" for name, rate in medians.items())
    if kind == "large":
        held = ", ".join(f"{name} {rate * BIG_MB:.0f} MB/s" for name, rate in medians.items())
    on, target = TARGETS.get(kind, ("", "")) if processes == 2 else ("", "")
    found = [Measured("R8", f"{what} / the better peer", ratio, "", target * (on == "ratio"), held)]
    if on == "rate":
        found.append(Measured("R8", what, medians["run"], "dp/s", target, ""))
    return found


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of %(default)s")
    args = parser.parse_args()
    found = []
    for kind in args.kinds.split(","):
        for processes in PROCESSES:
            found += rows(kind, processes, *measure(kind, processes, args.pairs, args.seconds))
    report(*found)


if __name__ == "__main__":
    main()
