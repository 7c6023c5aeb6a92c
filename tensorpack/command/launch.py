"""`tensorpack launch [options] SCRIPT [ARG ...]` is `python -m tensorpack.launch`."""

from typing import Any

from tensorpack.launch._arguments import add_arguments

from ._pass_on import become

__all__ = ["HELP", "TAKES_ALL", "add_arguments", "run"]

HELP = "start, watch and end the processes of a distributed run"
TAKES_ALL = True


def run(args: Any) -> int:
    """Becomes `python -m tensorpack.launch`, with the same arguments."""
    return become("tensorpack.launch", args.rest)
