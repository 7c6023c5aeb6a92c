"""A figure yields contests; `measure` lets their sides take turns and makes a row of the table."""

import argparse
import inspect
import os
import statistics
from typing import Any, Callable, Dict, NamedTuple

from _report import Row, medians_text, say


def ratio(ours, *others):
    """How many times as fast as the best of the others; of rates."""
    return ours / max(others) if others else ours


def difference(ours, *others):
    """What is beyond the others together, in their unit."""
    return ours - sum(others)


def itself(ours, *others):
    """The number of the first side, in its unit."""
    return ours


class Contest(NamedTuple):
    """A row of the table in docs/performance.md, before it is measured.

    A side is a callable that measures and returns a number; or a list of numbers, one a round,
    where the sides are measured together. The first side is ours.
    """

    what: str  # is measured, in a few words; tells apart the rows of one figure
    sides: Dict[str, Any]  # by name
    peers: Dict[str, Any] = {}  # sides that need an environment of benchmarks/peers
    unit: str = "it/s"  # of the numbers
    judge: Callable[..., float] = ratio  # makes the value of a round from its numbers
    target: str = ""  # as ">= 0.95" or "<= 20"; empty where there is none


def measure(contests, pairs, alone=False):
    """Measures contests, with a line a round; returns the rows.

    Args:
      contests: a generator of `Contest`; a `yield` returns the numbers, a list by name of the side.
      pairs: rounds, where the numbers are not there already.
      alone: leave out the peers; where our side remains, its number is the value.
    """
    rows, columns = [], None
    while True:
        contest = None  # frees what its sides hold before the next contest is made
        try:
            contest = contests.send(columns)
        except StopIteration:
            return rows
        columns, row = _play(contest, {} if alone else contest.peers, pairs)
        rows.append(row)


def _play(contest, peers, pairs):
    sides = {**contest.sides, **peers}
    lists = [side for side in sides.values() if not callable(side)]
    calls = [side if callable(side) else iter(side).__next__ for side in sides.values()]
    rounds, values = [], []
    for index in range(min(map(len, lists), default=pairs)):
        rounds.append({name: float(call()) for name, call in zip(sides, calls)})
        values.append(contest.judge(*rounds[-1].values()))
        text = medians_text(rounds[-1], contest.unit)
        load = os.getloadavg()[0]
        say(f"{contest.what}, {index}: {text}: {values[-1]:.3f} (load {load:.1f})")
    columns = {name: [numbers[name] for numbers in rounds] for name in sides}
    is_ratio = contest.judge not in (difference, itself) and len(sides) > 1
    return columns, Row(
        what=contest.what,
        value=statistics.median(values),
        unit="" if is_ratio else contest.unit,
        target=contest.target if peers == contest.peers else "",
        medians={name: statistics.median(column) for name, column in columns.items()},
        medians_unit=contest.unit,
    )


def call(function, name, argv, pairs):
    """Calls the function of a figure with the arguments on its command line, and returns the rows.

    There is a flag for each argument, of the kind of its default; tuples are separated by commas.
    What is left over is for the argument `flags`, if there is one.
    """
    parser = argparse.ArgumentParser(
        prog=f"run.py {name}",
        description=inspect.getdoc(function),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--alone", action="store_true", help="leave out what needs a peer")
    names = inspect.signature(function).parameters
    defaults = {"pairs": pairs, **{key: names[key].default for key in names if key != "flags"}}
    for key, default in defaults.items():
        kind, shown = type(default), default
        if isinstance(default, tuple):
            kind, shown = _tuple_of(type(default[0])), ",".join(map(str, default))
        flag = f"--{key.replace('_', '-')}"
        parser.add_argument(flag, type=kind, default=default, help=f"default: {shown}")
    args, flags = parser.parse_known_args(argv)
    if flags and "flags" not in names:
        parser.error(f"unrecognized arguments: {' '.join(flags)}")
    values = dict(vars(args), flags=flags)
    return measure(function(**{key: values[key] for key in names}), args.pairs, args.alone)


def _tuple_of(kind):
    return lambda text: tuple(map(kind, text.split(",")))
