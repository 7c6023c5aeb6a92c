"""What the subcommands share: exit codes, the error of a user's mistake, texts."""

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
