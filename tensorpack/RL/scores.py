"""Reads the scores of a run from its log directory, as curves and as means over windows.

`stats.json` has `mean_score`, of evaluations, and `agent_steps` and `hours` at the end of each
epoch; `episodes.csv`, of an `EpisodeLog`, has the games that ended in training.
"""

import csv
import os
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.runs import read_epochs

from .episodes import EpisodeLog

# What the x axis can show, and its name in stats.json.
AXES = {"steps": "agent_steps", "hours": "hours", "updates": "global_step"}

Window = Tuple[int, int]  # agent steps: after the first number, up to and with the second
Curve = Tuple[List[float], List[float]]  # x, ascending, and y


class RunScores(NamedTuple):
    """What is known of the scores of a run; ValueError for what it has not recorded."""

    directory: str
    epochs: List[Dict[str, Optional[float]]]  # as in stats.json
    steps: np.ndarray  # agent steps at the end of each game of the training; empty if unknown
    scores: np.ndarray  # of these games

    def column(self, axis: str) -> np.ndarray:
        """Returns a value of `AXES` at the end of every epoch, float `[epochs]`."""
        name = AXES[axis]
        if not all(name in epoch for epoch in self.epochs):
            raise ValueError(
                f"stats.json in {self.directory} has no {name}, as before this was recorded: take "
                "updates as the axis."
            )
        return np.array([epoch[name] for epoch in self.epochs], float)

    def training_curve(self, axis: str, window: int) -> Curve:
        """Returns the mean score of the games that ended in training, for each window with games.

        A point is in the middle of its window. Where single games are not recorded, the windows are
        epochs, and a point is at the end of its epoch.

        Args:
          axis: what `x` is, see `AXES`.
          window: its size in agent steps.
        """
        at = self.column(axis)
        if not len(self.steps):
            names = (name for epoch in self.epochs for name in epoch if epoch[name] is not None)
            scores = filter(lambda name: name.endswith("/mean_score"), names)
            return self._epochs_with(next(scores, ""), axis)
        steps = self.column("steps")
        ends = window * np.arange(1, int(steps[-1]) // window + 1)
        means = self.window_means([(end - window, end) for end in ends.tolist()])
        # before the first epoch has ended, everything goes in proportion
        x = np.interp(ends - window / 2, np.append(0, steps), np.append(0, at)).tolist()
        points = [(where, mean) for where, mean in zip(x, means) if mean is not None]
        return [where for where, _ in points], [mean for _, mean in points]

    def evaluation_curve(self, axis: str) -> Curve:
        """Returns the mean score of each evaluation."""
        self.column(axis)
        return self._epochs_with("mean_score", axis)

    def window_means(self, windows: Sequence[Window]) -> List[Optional[float]]:
        """Returns the mean score of the games that ended in each window of the training.

        It is None where the run has not reached the end of the window, or no game ended in it.
        """
        if not len(self.steps):
            raise ValueError(
                f"{self.directory} has no {EpisodeLog.FILENAME} with games: its scores over "
                "windows are not known."
            )
        reached = self.column("steps")[-1]
        means: List[Optional[float]] = []
        for first, last in windows:
            inside = self.scores[slice(*np.searchsorted(self.steps, [first, last], "right"))]
            means.append(float(inside.mean()) if len(inside) and reached >= last else None)
        return means

    def _epochs_with(self, name: str, axis: str) -> Curve:
        pairs = [(epoch.get(AXES[axis]), epoch.get(name)) for epoch in self.epochs]
        points = sorted((x, y) for x, y in pairs if x is not None and y is not None)
        return [x for x, _ in points], [y for _, y in points]


def read_scores(directory: str) -> RunScores:
    """Reads a log directory; ValueError if it has no run in which a game or an evaluation ended."""
    path = os.path.join(directory, "stats.json")
    try:
        epochs = list(read_epochs(path))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Give the log directory of a run."
        ) from error
    steps, scores = _read_games(os.path.join(directory, EpisodeLog.FILENAME))
    has_scores = len(steps) > 0 or any("mean_score" in name for epoch in epochs for name in epoch)
    if not epochs or not has_scores:
        raise ValueError(
            f"{path} has {len(epochs)} epochs and no scores: resume the run until a game or an "
            "evaluation has ended."
        )
    return RunScores(directory, epochs, steps, scores)


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
