"""The arguments of `python -m tensorpack.launch`; importing this loads nothing else."""

import argparse
from contextlib import suppress
from typing import Callable

__all__ = ["DEFAULT_PORT", "add_arguments", "make_parser"]

_PROGRAM = "python -m tensorpack.launch"
DEFAULT_PORT = 2222


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the program."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} [options] SCRIPT [ARGUMENTS]\n"
        f"       {_PROGRAM} [options] -m MODULE [ARGUMENTS]",
        description="Starts a script in several processes, which find each other by the variable "
        "TF_CONFIG, and ends all when one fails.",
        epilog="Exit codes: 0 all workers finished, 2 a wrong command line, 130 Ctrl-C, 143 "
        "SIGTERM, else that of the process that failed first (128 + n if signal n ended it). What "
        "the processes print is passed on line by line, with their names before it.",
    )
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments; `tensorpack completion` asks for them too."""
    add = parser.add_argument
    text = "how many workers to start (1); worker 0 is the chief"
    add("--workers", type=_number(1), metavar="N", help=text)
    add("--ps", type=_number(0), metavar="N", help="how many parameter servers to start (0)")
    text = "run on several machines: a file with a line 'host[:port] [workers=N] [ps=N]' for each. "
    text += "Give the same command on each machine; it starts the processes of that machine"
    add("--hosts", metavar="FILE", help=text)
    text = "which lines of FILE are this machine's (those with its host name)"
    add("--host", metavar="NAME", help=text)
    text = f"port of the first process of a machine (a free one; with --hosts {DEFAULT_PORT})"
    add("--port", type=_number(1, most=65535), metavar="PORT", help=text)
    text = "restart the group after a failure, up to N times (%(default)s). The script resumes "
    text += 'from its last state if it asks for that, by resume="auto"'
    add("--max-restarts", type=_number(0), default=0, metavar="N", help=text)
    text = "time to end after Ctrl-C or SIGTERM, before the processes are killed (%(default)g)"
    add("--grace", type=_seconds, default=30.0, metavar="S", help=text)
    text = "run a module instead of a script; what follows its name are its arguments"
    add("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help=text)
    text = "the Python script and its arguments"
    add("command", nargs=argparse.REMAINDER, metavar="SCRIPT", help=text)


def _number(least: int, most: int = 10000) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {least} to {most}")
        return int(text)

    return convert


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
