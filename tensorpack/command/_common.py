"""What the subcommands share: exit codes, the error of a user's mistake, texts."""

import json
from typing import Any, Iterable, Sequence

FINE = 0
PROBLEM = 1  # a problem was found
WRONG = 2  # the command line, or what it names, cannot be used
INTERRUPTED = 130


class CommandError(Exception):
    """An argument of a command cannot be used; the message says why, and what can."""


def printable(text: str, kept: str = "") -> str:
    """Returns a text with all control characters escaped, except those in `kept`."""
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def shape_text(shape: Iterable[int]) -> str:
    """Returns a shape such as `3 x 3 x 64`, or `scalar`."""
    return " x ".join(map(str, shape)) or "scalar"


def table_text(rows: Iterable[Sequence[Any]], headers: Sequence[str] = ()) -> str:
    """Returns rows in columns; columns of numbers are right-aligned."""
    from tabulate import tabulate

    shown = [[printable(str(each)) for each in row] for row in rows]
    return tabulate(shown, headers=headers, tablefmt="simple" if headers else "plain")


def json_text(value: Any) -> str:
    """Returns a value as JSON; NaN and infinite numbers become null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda name: None)
    return json.dumps(finite, indent=1, allow_nan=False)
