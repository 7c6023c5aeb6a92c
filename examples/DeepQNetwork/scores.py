"""Scores of runs and of published ones: read from their files, averaged over windows and runs."""

import csv
import json
import os
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from episodes import EpisodeLog

from tensorpack.runs import read_epochs

__all__ = [
    "AXES",
    "Band",
    "Curve",
    "Published",
    "Run",
    "evaluation_curve",
    "make_band",
    "read_published",
    "read_run",
    "training_curve",
    "window_means",
]

# What the x axis can show, and its name in stats.json.
AXES = {"steps": "agent_steps", "hours": "hours", "updates": "global_step"}

Window = Tuple[int, int]  # agent steps: after the first number, up to and with the second


class Run(NamedTuple):
    """What is known of a run."""

    directory: str
    epochs: List[Dict[str, Optional[float]]]  # as in stats.json
    steps: np.ndarray  # agent steps at the end of each game of the training; empty if unknown
    scores: np.ndarray  # of these games

    def column(self, axis: str) -> np.ndarray:
        """Returns a value of `AXES` at the end of every epoch.

        Raises:
          ValueError: the run does not have it.
        """
        name = AXES[axis]
        if not all(name in each for each in self.epochs):
            raise ValueError(
                f"stats.json in {self.directory} has no {name}, as before this was recorded: use "
                "--x updates."
            )
        return np.array([each[name] for each in self.epochs], float)


class Curve(NamedTuple):
    """A score over something; both float `[N]`."""

    x: np.ndarray
    y: np.ndarray


class Band(NamedTuple):
    """Curves of several runs as one; all float `[N]`."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray  # of the worst run
    high: np.ndarray  # of the best run


class Published(NamedTuple):
    """Published scores of one game."""

    windows: List[Window]
    scores: Dict[str, List[float]]  # name of an algorithm to its score in each window
    source: str


def read_run(directory: str) -> Run:
    """Reads a log directory.

    Raises:
      ValueError: it is not that of a run, or no game and no evaluation has ended.
    """
    path = os.path.join(directory, "stats.json")
    try:
        epochs = list(read_epochs(path))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Give the log directory of a run."
        ) from error
    steps, scores = _read_games(os.path.join(directory, EpisodeLog.FILENAME))
    has_scores = len(steps) > 0 or any("mean_score" in name for each in epochs for name in each)
    if not epochs or not has_scores:
        raise ValueError(
            f"{path} has {len(epochs)} epochs and no scores: resume the run until a game or an "
            "evaluation has ended."
        )
    return Run(directory, epochs, steps, scores)


def _read_games(path: str) -> Tuple[np.ndarray, np.ndarray]:
    if not os.path.exists(path):  # a run of before it was written
        return np.zeros(0), np.zeros(0)
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        steps, scores = ([float(row[name]) for row in rows] for name in ("step", "score"))
        return np.array(steps), np.array(scores)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read: {error!r}.") from error


def training_curve(run: Run, axis: str, window: int) -> Curve:
    """Returns the mean score of the games that ended in training, for each window.

    A point is in the middle of its window. Where single games are not recorded, the windows are
    epochs, and a point is at the end of its epoch.

    Args:
      run: the run.
      axis: what `x` is, see `AXES`.
      window: its size in agent steps.
    """
    at = run.column(axis)
    if not len(run.steps):
        return _epochs_with(run, "expreplay/mean_score", at)
    steps = run.column("steps")
    count = int(steps[-1]) // window if len(steps) else 0
    ends = window * np.arange(1, count + 1)
    means = window_means(run, [(end - window, end) for end in ends.tolist()])
    # before the first epoch has ended, everything goes in proportion
    x = np.interp(ends - window / 2, np.append(0, steps), np.append(0, at))
    return Curve(x, np.array([np.nan if each is None else each for each in means]))


def evaluation_curve(run: Run, axis: str) -> Curve:
    """Returns the mean score of each evaluation."""
    return _epochs_with(run, "mean_score", run.column(axis))


def _epochs_with(run: Run, name: str, at: np.ndarray) -> Curve:
    values = [np.nan if each.get(name) is None else each[name] for each in run.epochs]
    scores = np.array(values, float)
    known = ~np.isnan(scores)
    return Curve(at[known], scores[known])


def make_band(curves: Sequence[Curve]) -> Band:
    """Returns mean, lowest and highest of curves, point by point, as far as all of them go."""
    length = min(len(each.x) for each in curves)
    x = np.mean([each.x[:length] for each in curves], 0)
    y = np.array([each.y[:length] for each in curves])
    known = ~np.isnan(y).any(0)
    y = y[:, known]
    return Band(x[known], y.mean(0), y.min(0), y.max(0))


def window_means(run: Run, windows: Sequence[Window]) -> List[Optional[float]]:
    """Returns the mean score of the games that ended in each window of a training.

    It is None where the run has not reached the end of the window, or no game ended in it.

    Raises:
      ValueError: the games of the run were not recorded.
    """
    if not len(run.steps):
        raise ValueError(
            f"{run.directory} has no {EpisodeLog.FILENAME} with games: its scores over windows are "
            "not known."
        )
    reached = run.column("steps")[-1]
    means: List[Optional[float]] = []
    for first, last in windows:
        inside = run.scores[slice(*np.searchsorted(run.steps, [first, last], "right"))]
        means.append(float(inside.mean()) if len(inside) and reached >= last else None)
    return means


def read_published(game: str) -> Published:
    """Returns the scores of a game in `published.json`.

    Raises:
      ValueError: the file does not have the game.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.json")
    with open(path) as file:
        data = json.load(file)
    if game not in data["games"]:
        raise ValueError(f"{path} has no {game}, only {', '.join(sorted(data['games']))}.")
    windows = [(first, last) for first, last in data["windows"]]
    return Published(windows, data["games"][game], data["source"])
