"""Reads scalars of runs from their `stats.json`, smooths them, and makes bands of several runs."""

import fnmatch
import glob
import os
import sys
from contextlib import suppress
from typing import Dict, List, NamedTuple, Sequence, Tuple

from tensorpack.runs.statistics import Epoch, read_epochs

from ._codes import CommandError, did_you_mean
from ._texts import printable

_STATS = "stats.json"
# What the axes are called in stats.json, and the factor that makes their unit of it.
_AXES = {
    "step": [("global_step", 1.0)],
    "epoch": [("epoch_num", 1.0)],
    "time": [("hours", 1.0), ("wall_hours", 1.0), ("wall_time", 1 / 3600), ("seconds", 1 / 3600)],
}
LABELS = {"step": "step", "epoch": "epoch", "time": "hours"}

Groups = Dict[str, List["Run"]]  # by name, in the order of the command line


class Run(NamedTuple):
    """The epochs of a log directory."""

    directory: str
    epochs: List[Epoch]

    def names(self) -> List[str]:
        """The scalars that have a finite value, in the order in which they first appear."""
        return list({name: 0 for each in self.epochs for name in each if each[name] is not None})

    def curve(self, name: str, axis: str) -> Tuple[List[float], List[float]]:
        """Returns x and y of a scalar, x ascending, without epochs that do not have both."""
        known = self.names()
        choices = [each for each in _AXES.get(axis, [(axis, 1.0)]) if each[0] in known]
        if not choices:
            near = did_you_mean(axis, [*_AXES, *known])
            path = os.path.join(self.directory, _STATS)
            advice = near or " Give --x step, --x epoch, or the name of a scalar."
            raise CommandError(f"{path} has nothing for --x {axis}.{advice}")
        x_name, factor = choices[0]
        points = []
        for epoch in self.epochs:
            x, y = epoch.get(x_name), epoch.get(name)
            if x is not None and y is not None:
                points.append((x * factor, y))
        points.sort(key=lambda point: point[0])
        return [x for x, _ in points], [y for _, y in points]


class Band(NamedTuple):
    """Mean, lowest and highest of the curves of several runs, each a list as long as `x`."""

    x: List[float]
    mean: List[float]
    low: List[float]
    high: List[float]
    runs: int


def read_groups(arguments: Sequence[str]) -> Groups:
    """Reads the runs that a command line names: `DIR`, `PATTERN`, or `NAME=` and one of them.

    Directories without a run are skipped with a line on standard error, if there is another.
    """
    groups: Groups = {}
    problems: List[CommandError] = []
    for argument in arguments:
        name, directories = _named(argument)
        for directory in directories:
            own = name or os.path.basename(os.path.abspath(directory))
            try:
                run = _read_run(directory)
            except CommandError as error:
                problems.append(error)
                continue
            groups.setdefault(own, []).append(run)
    if not groups:
        raise problems[0]
    for problem in problems:
        sys.stderr.write(printable(f"skipped: {problem}") + "\n")
    return groups


def _named(argument: str) -> Tuple[str, List[str]]:
    """A name, or "", and directories; "=" belongs to their paths where there are such."""
    before, _, rest = argument.partition("=")
    for name, pattern in (("", argument), (before, rest)):
        found = [pattern] if os.path.isdir(pattern) else sorted(glob.glob(pattern))
        directories = [each for each in found if os.path.isdir(each)]
        if directories:
            return name, directories
    raise CommandError(_no_such(rest or argument))


def choose_scalars(groups: Groups, patterns: Sequence[str]) -> List[str]:
    """Returns the scalars that some run has and that match a pattern, such as `validation_*`.

    Without patterns, scores, costs and errors: four at most.
    """
    known = {name: None for runs in groups.values() for run in runs for name in run.names()}
    names = [name for name in known if name not in ("epoch_num", "global_step")]
    if not names:
        raise CommandError("No run has a scalar with a finite value. Wait for the next epoch.")
    if not patterns:
        wanted = ("score", "accuracy", "error", "cost", "loss", "reward")
        ranked = [name for word in wanted for name in names if word in name.lower()]
        plain = [name for name in ranked if not name.startswith(("param-", "Summary"))]
        return list(dict.fromkeys(plain or names))[:4]
    chosen: Dict[str, None] = {}
    for pattern in patterns:
        found = [pattern] if pattern in known else fnmatch.filter(names, pattern)
        if not found:
            near = did_you_mean(pattern, names) or " --list lists all."
            raise CommandError(f"No run has a scalar {pattern!r}.{near}")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def smooth(values: Sequence[float], weight: float) -> List[float]:
    """Returns the exponential moving averages, in which earlier values have `weight`, in [0, 1).

    They are divided by the sum of the weights so far, so the first value counts no more than later
    ones.
    """
    smoothed, total, norm = [], 0.0, 0.0
    for value in values:
        total = weight * total + (1 - weight) * value
        norm = weight * norm + (1 - weight)
        smoothed.append(total / norm)
    return smoothed


def make_band(curves: Sequence[Tuple[List[float], List[float]]]) -> Band:
    """Returns the band of several curves over the range that all of them cover."""
    import numpy as np

    curves = [each for each in curves if each[0]]
    if not curves:
        return Band([], [], [], [], 0)
    if len(curves) == 1:
        x, y = curves[0]
        return Band(list(x), list(y), list(y), list(y), 1)
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    grid = sorted({each for x, _ in curves for each in x if first <= each <= last})
    values = np.array([np.interp(grid, x, y) for x, y in curves])
    mean, low, high = (each.tolist() for each in (values.mean(0), values.min(0), values.max(0)))
    return Band(grid, mean, low, high, len(curves))


def _read_run(directory: str) -> Run:
    path = os.path.join(directory, _STATS)
    epochs: List[Epoch] = []
    try:
        with suppress(ValueError):  # a run that was killed may have cut it off
            epochs.extend(read_epochs(path))
    except FileNotFoundError:
        raise CommandError(f"{directory} has no {_STATS}.{_runs_below(directory)}") from None
    if not epochs:
        raise CommandError(f"{path} has no epoch yet. Wait for the first one to end.")
    return Run(directory, epochs)


def _runs_below(directory: str) -> str:
    below = sorted(glob.glob(os.path.join(glob.escape(directory), "*", _STATS)))
    if not below:
        return " Give the log directory of a run."
    some = ", ".join(os.path.dirname(each) for each in below[:3])
    return f" There are runs in {some}: give these, or {os.path.join(directory, '*')!r}."


def _no_such(pattern: str) -> str:
    folder, name = os.path.split(os.path.normpath(pattern))
    names = sorted(os.listdir(folder or ".")) if os.path.isdir(folder or ".") else []
    near = did_you_mean(name, names) or " Give the log directory of a run, or a pattern of some."
    return f"There is no directory {pattern!r}.{near}"
