"""R1: the whole DQN run against its update alone, in pairs, on the TensorFlow that runs this.

    python benchmarks/r1_dqn_run.py [--pairs 5] [--num-players 8] [--precision bf16]

The run has the default flags but for the size of the memory, see `dqn_run.py`, where the flags go
that this script does not know.
"""

import argparse

from _programs import bare, whole
from _report import Measured, alternate, report

BARE_SECONDS = 10


def main():
    """Measures and prints a row a pair, the median ratio last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300, help="updates that count")
    parser.add_argument("--rom", default="breakout.bin")
    parser.add_argument("--label", default="", help="what to call it in the table")
    parser.add_argument("--num-players", type=int, help="games played at once, as for DQN.py")
    parser.add_argument("--precision", help="of the update, for the run and alone, as for DQN.py")
    parser.add_argument("--xla", action="store_true", help="the same")
    args, flags = parser.parse_known_args()
    graph = ["--precision", args.precision] if args.precision else []
    graph += ["--xla"] if args.xla else []
    if args.num_players:
        flags += ["--num-players", str(args.num_players)]
    run, alone, ratio = alternate(
        ("run", lambda: whole(args.steps, args.rom, graph + flags)),
        ("bare", lambda: bare(BARE_SECONDS, graph)),
        args.pairs,
    )
    label = args.label or "whole DQN run / bare update"
    peer = f"run {run:.1f} it/s, bare update {alone:.1f} it/s"
    report(Measured("R1", label, ratio, target=">= 0.95", peer=peer))


if __name__ == "__main__":
    main()
