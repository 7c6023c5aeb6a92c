"""`tensorpack report DIR`: a page of HTML about a run, or about several."""

import argparse
from typing import Any

HELP = "write a page of HTML about a run: result, curves, time, pictures, log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "a log directory, such as train_log/run; curves of several are in the same charts"
    add("directory", metavar="DIR", nargs="+", help=text)
    text = "the page (default: report.html in DIR, or above several); FILE.png: the curves alone"
    add("--out", metavar="FILE", help=text)


def run(args: Any) -> None:
    from tensorpack.report import write_report

    print(write_report(args.directory, args.out))
