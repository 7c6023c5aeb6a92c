"""`tensorpack doctor`: what is installed here, and what TensorFlow sees."""

import argparse
from typing import Any

from ._common import FINE

HELP = "print what is installed and what TensorFlow sees, for a report of a problem"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds none."""


def run(args: Any) -> int:
    from tensorpack.tfutils.common import collect_env_info

    args.write(collect_env_info())
    return FINE
