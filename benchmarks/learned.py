"""R16: what is learned of a game in hours, against stable-baselines3, from two finished runs."""

import os

import numpy as np
from _contest import Contest, difference
from _programs import example
from _report import NOT_MEASURED, say


def score(ours="train_log/fast-pong-1", peer="train_log/sb3-pong", minutes=15.0):
    """The mean score of the games that ended in training in each of so many minutes.

        taskset -c 0 make learn ROM=pong.bin
        taskset -c 1 .venv-peer-sb3/bin/python benchmarks/peers/sb3.py learn --game Pong \\
            --hours 2 --logdir train_log/sb3-pong

    Give both the same cores for the same time, beside each other or one after the other. The result
    is how far ours is ahead in the last time span in which both have ended a game. The scores are
    of agents that explore, each by its own schedule: of the peer's actions, most are random in the
    first hours. What it has learned by then is the `mean_score` of its last epoch, to be held
    against `DQN.py --task eval`. `plot_scores.py --x hours` draws both.
    """
    example("DeepQNetwork")
    from scores import read_run

    lacking = [path for path in (ours, peer) if not os.path.isdir(path)]
    if lacking:
        say(f"{NOT_MEASURED}: it needs runs of hours, there is no {lacking[0]}")
        return
    hours = minutes / 60
    pairs = list(zip(*(means_by_time(read_run(path), hours) for path in (ours, peer))))
    while pairs and np.isnan(pairs[-1]).any():
        pairs.pop()
    if not pairs:
        raise ValueError(f"No game ended in {minutes:g} minutes, in one of the runs.")
    for i, (mine, theirs) in enumerate(pairs):
        start, end = i * hours, (i + 1) * hours
        say(f"hours {start:.2f} to {end:.2f}: ours {mine:.2f}, peer {theirs:.2f}")
    what = f"score in {len(pairs) * hours:.2f} hours, {os.path.basename(ours)} - stable-baselines3"
    sides = {"ours": [pairs[-1][0]], "stable-baselines3": [pairs[-1][1]]}
    yield Contest(what, sides, unit="points", judge=difference, target=">= 0")


def means_by_time(run, hours):
    """The mean score of the games of each time span, as far as the run goes; NaN without a game.

    Args:
      run: a `Run`.
      hours: length of a span.
    """
    steps, elapsed = run.column("steps"), run.column("hours")
    ended = np.interp(run.steps, np.append(0, steps), np.append(0, elapsed))
    spans = (ended // hours).astype(int)
    count = int(elapsed[-1] / hours)
    return [run.scores[spans == i].mean() if (spans == i).any() else np.nan for i in range(count)]
