"""`tensorpack examples DIR`: copies the example scripts into a new folder."""

import argparse
import os
import shutil
from typing import Any

from ._common import FINE, CommandError

HELP = "copy the example scripts into a new folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the folder, which is made")


def run(args: Any) -> int:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # A wheel has them in the package, a clone that is installed in place beside it.
    places = [os.path.join(package, "_examples"), os.path.join(package, "..", "examples")]
    source = next(filter(os.path.isdir, places), None)
    if source is None:
        raise CommandError(
            f"There are no examples in {package}. Install from a clone: pip install ."
        )
    ignored = shutil.ignore_patterns("__pycache__", "train_log")
    try:
        shutil.copytree(source, args.directory, ignore=ignored)
    except FileExistsError:
        raise CommandError(
            f"{args.directory} exists, and nothing is overwritten. Give a new folder."
        ) from None
    args.write(f"The examples are in {args.directory}: see {args.directory}/README.md.")
    return FINE
