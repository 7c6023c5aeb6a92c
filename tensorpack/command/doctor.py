"""`tensorpack doctor`: what is installed here, and what TensorFlow sees."""

import argparse
from typing import Any

HELP = "print what is installed and what TensorFlow sees, for a report of a problem"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds none."""


def run(args: Any) -> None:
    from tensorpack.tfutils.common import collect_env_info

    print(collect_env_info())
