"""What the subcommands agree on: exit codes, the error of a user's mistake, advice on names."""

from difflib import get_close_matches
from typing import Iterable

FINE = 0
PROBLEM = 1  # a problem was found, or two things differ
WRONG = 2  # the command line, or what it names, cannot be used
INTERRUPTED = 130


class CommandError(Exception):
    """An argument cannot be used; the message says in one line why, and what can."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ` Did you mean 'x'?`, or "" if no known name is like this one."""
    names = list(known)
    near = get_close_matches(name, names, 3)
    if not near:  # a part of a long name, such as one without its scope
        near = [each for each in names if name and name.lower() in each.lower()][:3]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
