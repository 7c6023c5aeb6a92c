"""`tensorpack examples DIR`: copies the example scripts into a new folder."""

import argparse
import os
import shutil
from typing import Any

HELP = "copy the example scripts into a new folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the folder, which is made")


def run(args: Any) -> None:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    source = os.path.join(package, "_examples")  # of a wheel
    if not os.path.isdir(source):  # installed in place from a clone
        source = os.path.join(package, "..", "examples")
    ignored = shutil.ignore_patterns("__pycache__", "train_log")
    shutil.copytree(source, args.directory, ignore=ignored)
    print(f"The examples are in {args.directory}: see {args.directory}/README.md.")
