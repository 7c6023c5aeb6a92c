"""R17: the actor-critic of examples/A3C against stable-baselines3: steps of the games per second.

    python benchmarks/a2c_sb3.py [--pairs 5] [--processes] [--precision bf16]

The same network, games, rollouts and costs. Needs `make bench-peers`.
"""

import argparse
import re

from _programs import HERE, output_of, peer_python
from _report import Measured, alternate, report

RATE = re.compile(r"steps/s: ([0-9.]+)")


def main():
    """Measures and prints a row a pair, the median ratio last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8000, help="steps that count")
    parser.add_argument("--processes", action="store_true", help="theirs: a process for each game")
    parser.add_argument("--precision", default="fp32", help="ours")
    args = parser.parse_args()
    python = peer_python("sb3")
    theirs = [HERE / "peers" / "sb3_a2c.py", "--steps", args.steps]
    theirs += ["--processes"] if args.processes else []
    run = [HERE / "a2c_run.py", "--steps", args.steps, "--precision", args.precision]
    ours, peer, ratio = alternate(
        ("run", lambda: rate_of(output_of(*run))),
        ("stable-baselines3", lambda: rate_of(output_of(*theirs, python=python))),
        args.pairs,
        unit="steps/s",
    )
    held = f"run {ours:.0f} steps/s, stable-baselines3 {peer:.0f} steps/s"
    what = "actor-critic, steps of 16 games / stable-baselines3's A2C"
    note = "" if args.precision == "fp32" else args.precision
    report(Measured("R17", what, ratio, target=">= 2", peer=held, note=note))


def rate_of(text):
    """The number that a program has printed."""
    return float(RATE.search(text).group(1))


if __name__ == "__main__":
    main()
