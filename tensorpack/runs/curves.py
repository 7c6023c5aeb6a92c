"""Curves of the scalars of epochs: their order, their points, and those of several runs."""

import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

from .statistics import Epoch

RESERVED = ("epoch_num", "global_step")  # what tells epochs apart, not what came of them
IS_SCORE = re.compile(r"score|accuracy|reward|precision|recall|\bauc\b|\bmap\b")
_IS_MAIN = re.compile(r"score|accuracy|cost|loss|error")


class Band(NamedTuple):
    """Mean, lowest and highest of the curves of several runs, each a list as long as `x`."""

    x: List[float]
    mean: List[float]
    low: List[float]
    high: List[float]
    runs: int


def scalar_rank(name: str) -> Tuple[bool, bool, int, str]:
    """Returns a key that sorts the names of scalars: what a run is about first, above all scores,
    and `mean_score` before `of/a/part/mean_score`.
    """
    lower = name.lower()
    is_main = bool(_IS_MAIN.search(lower))
    depth = name.count("/") if is_main else 0
    return not is_main, is_main and not IS_SCORE.search(lower), depth, name


def names_of(epochs: Sequence[Epoch]) -> Dict[str, None]:
    """Returns the scalars that have a finite value, in the order in which they first appear."""
    return {name: None for each in epochs for name in each if each[name] is not None}


def curve_of(epochs: Sequence[Epoch], name: str, axis: str) -> Tuple[List[float], List[float]]:
    """Returns the values of two scalars: `axis`, ascending, and `name`, of epochs with both."""
    pairs = ((epoch.get(axis), epoch.get(name)) for epoch in epochs)
    points = [(x, y) for x, y in pairs if x is not None and y is not None]
    points.sort(key=lambda point: point[0])
    return [x for x, _ in points], [y for _, y in points]


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
