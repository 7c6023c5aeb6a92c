"""`tensorpack report DIR`: a page of HTML about a run, or about several."""

import argparse
from typing import Any

HELP = "write a page of HTML about a run: result, curves, time, pictures, log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes one file of HTML about the log directory of a training, to be read offline. The "
        "run may still be in progress. The curves of several are drawn in the same charts."
    )
    add = parser.add_argument
    add("directory", metavar="DIR", nargs="+", help="a log directory, such as train_log/run")
    add("--out", metavar="FILE", help="the page (default: report.html in DIR, or above several)")


def run(args: Any) -> None:
    from tensorpack.report import write_report

    print(write_report(args.directory, args.out))
