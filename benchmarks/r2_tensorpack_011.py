"""R2: the whole DQN run on this TensorFlow against tensorpack 0.11 on TensorFlow 1.15.5.

    python benchmarks/r2_tensorpack_011.py [--pairs 5] [--precision fp32 bf16]

Needs `make bench-peers`. Each round runs tensorpack 0.11 and then this project in each precision.
"""

import argparse
import os
import statistics

from _programs import tensorpack_011, whole
from _report import Measured, report, say

TARGETS = {"fp32": ">= 2.0", "bf16": ">= 3.0"}


def main():
    """Measures and prints a row a round, the median ratios last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300, help="updates that count")
    parser.add_argument("--rom", default="breakout.bin")
    parser.add_argument("--precision", nargs="+", choices=TARGETS, default=list(TARGETS))
    args = parser.parse_args()
    peers, ours = [], {precision: [] for precision in args.precision}
    for number in range(args.pairs):
        peers.append(tensorpack_011(args.steps, args.rom))
        row = [f"tensorpack 0.11 {peers[-1]:.2f} it/s"]
        for precision, rates in ours.items():
            # without the flag it is the default, whatever the others are called
            flags = [] if precision == "fp32" else ["--precision", precision]
            rates.append(whole(args.steps, args.rom, flags))
            row.append(f"{precision} {rates[-1]:.2f} it/s (ratio {rates[-1] / peers[-1]:.2f})")
        load = os.getloadavg()[0]
        say(f"round {number}: {', '.join(row)} (load {load:.1f})")
    peer = statistics.median(peers)
    for precision, rates in ours.items():
        ratio = statistics.median([rate / other for rate, other in zip(rates, peers)])
        held = f"run {statistics.median(rates):.1f} it/s, tensorpack 0.11 {peer:.1f} it/s"
        label = f"whole DQN run, {precision} / tensorpack 0.11"
        report(Measured("R2", label, ratio, target=TARGETS[precision], peer=held))


if __name__ == "__main__":
    main()
