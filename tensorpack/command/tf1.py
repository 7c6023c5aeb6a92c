"""`tensorpack tf1 SCRIPT [ARG ...]` is `python -m tensorpack.tf1`."""

import argparse
from typing import Any

from ._pass_on import become

HELP = "run a script for TensorFlow 1, unchanged, on the TensorFlow that is installed"
TAKES_ALL = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what completion and `tensorpack --help` need: the program itself reads its arguments."""
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="SCRIPT [ARG ...]")


def run(args: Any) -> int:
    """Becomes `python -m tensorpack.tf1`, with the same arguments."""
    return become("tensorpack.tf1", args.rest)
