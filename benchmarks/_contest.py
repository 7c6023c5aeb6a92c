"""What a figure is made of: sides that are measured in turns, and a number made of each round."""

import argparse
import inspect
import os
import statistics
from typing import Any, Callable, Dict, NamedTuple

from _report import Measured, number, say


def ratio(ours, *others):
    """How many times as fast as the best of the others; of rates."""
    return ours / max(others)


def difference(ours, *others):
    """What is beyond the others together, in their unit."""
    return ours - sum(others)


def itself(ours, *others):
    """The number of the first side, in its unit."""
    return ours


class Contest(NamedTuple):
    """A row of the table in docs/performance.md, before it is measured.

    A side is a callable that measures, and returns a number; or the numbers, one a round, where
    they are measured together. The first side is ours.
    """

    what: str  # is measured, in a few words; tells apart the rows of one figure
    sides: Dict[str, Any]  # by name
    peers: Dict[str, Any] = {}  # sides that need an environment of their own, see `alone`
    unit: str = "it/s"  # of the numbers
    judge: Callable[..., float] = ratio  # makes the measured number of those of a round
    target: str = ""  # as ">= 0.95" or "<= 20"; empty where there is none
    note: str = ""  # what a reader must know to judge it; empty mostly

    def alone(self):
        """The same without peers; of a ratio of nothing else, our number remains."""
        mine = self._replace(peers={})
        if self.peers and len(self.sides) == 1:
            what = self.what.partition(" / ")[0]
            mine = mine._replace(what=what, judge=itself, target="")
        return mine


def results(figure, contests, pairs, alone=False):
    """Measures contests, with a line a round; returns a list of `Measured`, medians of the rounds.

    Args:
      figure: the name, as "R5".
      contests: a generator of `Contest`; a `yield` returns the numbers, a list by name of the side.
      pairs: rounds, where the numbers are not there already.
      alone: leave out the peers.
    """
    found, columns = [], None
    while True:
        contest = None  # what it holds is free before the next one is made
        try:
            contest = contests.send(columns)
        except StopIteration:
            return found
        columns, measured = _hold(figure, contest.alone() if alone else contest, pairs)
        found.append(measured)


def _hold(figure, contest, pairs):
    sides = {**contest.sides, **contest.peers}
    given = [len(side) for side in sides.values() if not callable(side)]
    take = [side if callable(side) else iter(side).__next__ for side in sides.values()]
    rounds, judged = [], []
    for index in range(min(given, default=pairs)):
        rounds.append([float(each()) for each in take])
        judged.append(contest.judge(*rounds[-1]))
        told = _told(sides, rounds[-1], contest.unit)
        load = os.getloadavg()[0]
        say(f"{contest.what}, {index}: {told}: {judged[-1]:.3f} (load {load:.1f})")
    columns = dict(zip(sides, map(list, zip(*rounds))))
    medians = [statistics.median(column) for column in columns.values()]
    has_unit = contest.judge in (difference, itself)
    return columns, Measured(
        figure,
        contest.what,
        statistics.median(judged),
        contest.unit if has_unit else "",
        contest.target,
        _told(sides, medians, contest.unit) if len(sides) > 1 else "",
        contest.note,
    )


def _told(names, numbers, unit):
    return ", ".join(f"{name} {number(each)} {unit}" for name, each in zip(names, numbers))


def parser_of(name, function, pairs):
    """The command line of a figure: a flag for each argument of its function, from the default.

    Lists are separated by commas. What else is given is for the argument `flags`, if there is one.
    """
    parser = argparse.ArgumentParser(
        prog=f"run.py {name}",
        description=inspect.getdoc(function),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--alone", action="store_true", help="leave out what needs a peer")
    defaults = {each.name: each.default for each in inspect.signature(function).parameters.values()}
    for name, default in {"pairs": pairs, **defaults}.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        elif name != "flags":
            kind = _list_of(default) if isinstance(default, tuple) else type(default)
            told = ",".join(map(str, default)) if isinstance(default, tuple) else default
            parser.add_argument(flag, type=kind, default=default, help=f"default: {told}")
    return parser


def _list_of(default):
    return lambda text: tuple(type(default[0])(each) for each in text.split(","))
