"""`tensorpack launch [options] SCRIPT [ARG ...]` is `python -m tensorpack.launch`."""

import argparse
from typing import Any

from ._pass_on import become

HELP = "start, watch and end the processes of a distributed run"
TAKES_ALL = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what completion and `tensorpack --help` need: the program itself reads its arguments."""
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="[options] SCRIPT [ARG ...]")


def run(args: Any) -> int:
    """Becomes `python -m tensorpack.launch`, with the same arguments."""
    return become("tensorpack.launch", args.rest)
