"""`tensorpack report DIR`: a page of HTML about a run."""

import argparse
from typing import Any

from ._common import FINE, CommandError

HELP = "write a page of HTML about a run: result, curves, time, parameters, log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes one file of HTML about the log directory of a training, to be read offline: how it "
        "ended, curves of its scalars, where its time went, its parameters, images, the end of its "
        "log. The run may still be in progress."
    )
    add = parser.add_argument
    add("directory", metavar="DIR", help="the log directory of a training, such as train_log/run")
    add("--out", metavar="FILE", help="the page (default: DIR/report.html)")


def run(args: Any) -> int:
    from tensorpack.report import write_report

    try:
        args.write(write_report(args.directory, args.out))
    except ValueError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"The page cannot be written: {error}. Give another --out.") from error
    return FINE
