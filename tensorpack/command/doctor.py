"""`tensorpack doctor`: what is installed here, and what TensorFlow sees."""

import argparse
import sys
from importlib.util import find_spec
from typing import Any

from tensorpack._version import __version__

HELP = "print what is installed and what TensorFlow sees, for a report of a problem"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds none."""


def run(args: Any) -> None:
    if find_spec("tensorflow") is None:
        print(f"python      {sys.version}\ntensorpack  {__version__}\ntensorflow  not installed")
        return
    from tensorpack.tfutils.common import collect_env_info

    print(collect_env_info())
