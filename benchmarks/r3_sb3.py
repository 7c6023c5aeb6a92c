"""R3: the whole DQN run against stable-baselines3 with the same network, batch and frequency.

    python benchmarks/r3_sb3.py [--pairs 5] [--games 4] [--precision bf16]

Needs `make bench-peers`. stable-baselines3 learns by plain Q-learning: two forward passes to the
three of the Double-DQN. Its update is in float32 in any case: it has no other.
"""

import argparse

from _programs import sb3, whole
from _report import Measured, alternate, report


def main():
    """Measures and prints a row a pair, the median ratio last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200, help="updates that count")
    parser.add_argument("--games", type=int, default=1, help="that both play at once")
    parser.add_argument("--precision", default="fp32", help="of our update, as for DQN.py")
    args = parser.parse_args()
    flags = ["--num-players", str(args.games), "--precision", args.precision]
    ours, peer, ratio = alternate(
        ("run", lambda: whole(args.steps, "breakout.bin", flags)),
        ("stable-baselines3", lambda: sb3(args.steps, args.games)),
        args.pairs,
    )
    held = f"run {ours:.1f} it/s, stable-baselines3 {peer:.1f} it/s"
    note = "it learns by plain, not by double Q-learning"
    label = f"whole DQN run, {args.games} games, {args.precision} / stable-baselines3"
    report(Measured("R3", label, ratio, target=">= 1.5", peer=held, note=note))


if __name__ == "__main__":
    main()
