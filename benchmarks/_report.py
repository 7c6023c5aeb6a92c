"""How a benchmark tells its result: a last line that `run_all.py` collects.

Standard library only and Python 3.7, because peers import it in environments of their own.
"""

import json
import os
import statistics
import sys
from typing import NamedTuple

__all__ = ["PREFIX", "Measured", "alternate", "is_met", "parse", "report"]

PREFIX = "RESULT "


class Measured(NamedTuple):
    """One figure, as a row of the table in docs/performance.md.

    Attributes:
      figure: its number, as "R5".
      what: what was measured, in a few words; tells apart the rows of one figure.
      value: the measured number; for a ratio, the median of the pairs.
      unit: of the value; empty for a ratio.
      target: as ">= 0.95" or "<= 20"; empty where there is none.
      peer: what it was held against, with its own number, as "tensorpack 0.11: 7.0 it/s".
      note: what a reader must know to judge it, as "prototype"; empty mostly.
    """

    figure: str
    what: str
    value: float
    unit: str = ""
    target: str = ""
    peer: str = ""
    note: str = ""


def is_met(measured):
    """Whether the value reaches the target; None where there is no target.

    Raises:
      ValueError: the target is neither ">= NUMBER" nor "<= NUMBER".
    """
    if not measured.target:
        return None
    sign, _, bound = measured.target.partition(" ")
    if sign not in (">=", "<="):
        raise ValueError(f"A target is '>= NUMBER' or '<= NUMBER', not {measured.target!r}.")
    return measured.value >= float(bound) if sign == ">=" else measured.value <= float(bound)


def report(*measured):
    """Writes each `Measured` as a line of its own; call it last."""
    for one in measured:
        is_met(one)  # a wrong target is found where it was written
        sys.stdout.write(PREFIX + json.dumps(one._asdict(), sort_keys=True) + "\n")
    sys.stdout.flush()


def parse(text):
    """The figures in what a benchmark printed, a list of `Measured`; passes over other lines."""
    lines = [line for line in text.splitlines() if line.startswith(PREFIX)]
    return [Measured(**json.loads(line[len(PREFIX) :])) for line in lines]


def alternate(first, second, pairs, unit="it/s"):
    """Measures A B A B ... and prints a line a pair.

    Args:
      first: (name, callable that measures and returns a number).
      second: the same, of what it is held against.
      pairs: how many of them, at least 5 for a figure that counts.
      unit: of both numbers.

    Returns:
      (median of the first, median of the second, median of first / second pair by pair).
    """
    rows = []
    for number in range(pairs):
        one, two = first[1](), second[1]()
        rows.append((one, two, one / two))
        sys.stdout.write(
            f"pair {number}: {first[0]} {one:.4g} {unit}, {second[0]} {two:.4g} {unit}, "
            f"ratio {one / two:.3f} (load {os.getloadavg()[0]:.1f})\n"
        )
        sys.stdout.flush()
    return tuple(statistics.median(column) for column in zip(*rows))
