"""What the subcommands agree on: exit codes, the error of a user's mistake, advice on names."""

import argparse
from contextlib import suppress
from difflib import get_close_matches
from typing import Callable, Iterable

from tensorpack.dataflow._cli import CommandError

__all__ = ["FINE", "INTERRUPTED", "PROBLEM", "WRONG", "CommandError", "did_you_mean", "number"]

FINE = 0
PROBLEM = 1  # a problem was found, or two things differ
WRONG = 2  # the command line, or what it names, cannot be used
INTERRUPTED = 130


def number(what: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """Returns a type of argparse: a number that fits; an error says that it is not one `what`."""

    def convert(text: str) -> float:
        with suppress(ValueError):
            if fits(float(text)):
                return float(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a number {what}")

    return convert


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ` Did you mean 'x'?`, or "" if no known name is like this one."""
    names = list(known)
    near = get_close_matches(name, names, 3)
    if not near:  # a part of a long name, such as one without its scope
        near = [each for each in names if name and name.lower() in each.lower()][:3]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
