"""The program `python -m tensorpack.dataflow`, see `__main__`; here is what its commands share."""

from typing import Iterable, Tuple


class CommandError(Exception):
    """An argument of a command cannot be used; the message says why, and what can."""


def printable(text: str, kept: str = "") -> str:
    """Returns a text with all control characters escaped, except those in `kept`."""
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def facts_table(facts: Iterable[Tuple[str, str]]) -> str:
    """Returns names and values in two columns."""
    from tabulate import tabulate

    rows = [(name, printable(value)) for name, value in facts]
    return tabulate(rows, tablefmt="plain", disable_numparse=True)


def number_text(number: float) -> str:
    """Returns a number with the three digits that a measurement is good for, such as `14500`."""
    return f"{float(f'{number:.3g}'):.15g}"
