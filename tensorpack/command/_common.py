"""What the subcommands share: exit codes, and the error of a user's mistake."""

FINE = 0
PROBLEM = 1  # a problem was found
WRONG = 2  # the command line, or what it names, cannot be used
INTERRUPTED = 130


class CommandError(Exception):
    """An argument of a command cannot be used; the message says why, and what can."""
