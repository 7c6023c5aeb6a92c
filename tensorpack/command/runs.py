"""`tensorpack runs DIR`: a table of the runs below a directory."""

import argparse
import os
from typing import Any

from ._codes import FINE, CommandError
from ._texts import json_text, table_text

__all__ = ["HELP", "add_arguments", "run"]

HELP = "list the runs below a directory: state, step, best value, age"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Lists the runs in a directory and below it, the youngest first: whether each is running, "
        "finished, was stopped, has failed or died (its process left without a word), its last "
        "step and epoch, its best value, and how long ago it wrote."
    )
    add = parser.add_argument
    text = "where to look (default: train_log)"
    add("directory", metavar="DIR", nargs="?", default="train_log", help=text)
    add("--json", action="store_true", help="print a list of objects of JSON")


def run(args: Any) -> int:
    """Prints the runs; returns the exit code."""
    from tensorpack.report._facts import duration_text
    from tensorpack.report._runs import find_runs

    try:
        found = find_runs(args.directory)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if args.json:
        args.write(json_text([dict(each._asdict()) for each in found]))
        return FINE
    if not found:
        args.write(f"There is no run in {args.directory}: a run has a run.json or a stats.json.")
        return FINE
    rows = [
        (
            os.path.relpath(each.directory, args.directory),
            each.state,
            "" if each.step is None else each.step,
            "" if each.epoch is None else each.epoch,
            each.best,
            duration_text(int(each.age)),
        )
        for each in found
    ]
    args.write(table_text(rows, ("run", "state", "step", "epoch", "best", "age")))
    return FINE
