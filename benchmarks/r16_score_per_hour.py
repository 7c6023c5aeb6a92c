"""R16: what is learned of a game in an hour, against stable-baselines3, from two finished runs.

    taskset -c 0 python examples/DeepQNetwork/DQN.py --rom pong.bin --preset fast --logdir OURS
    taskset -c 1 .venv-peer-sb3/bin/python benchmarks/peers/sb3_learning.py --game Pong --hours 2 \
        --logdir PEER
    python benchmarks/r16_score_per_hour.py OURS PEER [--minutes 15]

Give both programs the same cores for the same time, beside each other or one after the other.
Prints the mean score of the games that ended in training in each of so many minutes, and at last
how far ours is ahead in the last of them in which both have ended a game. The scores are of agents
that explore, each by its own schedule: of the peer's actions, most are random in the first hours.
What it has learned by then is the `mean_score` of its last epoch, to be held against `DQN.py --task
eval`. `plot_scores.py --x hours` draws both.
"""

import argparse
from pathlib import Path

import numpy as np
from _report import Measured, report, say

from tensorpack.RL import read_scores


def means_by_time(run, hours):
    """The mean score of the games of each time span, as far as the run goes; NaN without a game.

    Args:
      run: a `RunScores`.
      hours: length of a span.
    """
    steps, elapsed = run.column("steps"), run.column("hours")
    ended = np.interp(run.steps, np.append(0, steps), np.append(0, elapsed))
    spans = (ended // hours).astype(int)
    count = int(elapsed[-1] / hours)
    return [run.scores[spans == i].mean() if (spans == i).any() else np.nan for i in range(count)]


def main():
    """Reads, compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours", help="log directory of DQN.py")
    parser.add_argument("peer", help="log directory of peers/sb3_learning.py")
    parser.add_argument("--minutes", type=float, default=15.0, help="that a score is the mean of")
    args = parser.parse_args()
    hours = args.minutes / 60
    pairs = list(zip(*(means_by_time(read_scores(path), hours) for path in (args.ours, args.peer))))
    while pairs and np.isnan(pairs[-1]).any():
        pairs.pop()
    if not pairs:
        parser.error(
            f"one of the runs has no game that ended, or is below {args.minutes:g} minutes"
        )
    for i, pair in enumerate(pairs):
        say(
            "hours {:.2f} to {:.2f}: ours {:.2f}, peer {:.2f}".format(
                i * hours, (i + 1) * hours, *pair
            )
        )
    ours, theirs = pairs[-1]
    label = f"score in {len(pairs) * hours:.2f} hours, {Path(args.ours).name} - stable-baselines3"
    held = f"ours {ours:.1f}, stable-baselines3 {theirs:.1f}"
    report(Measured("R16", label, ours - theirs, "points", ">= 0", held))


if __name__ == "__main__":
    main()
