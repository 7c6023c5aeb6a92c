"""`tensorpack watch DIR`: the page about a run, renewed in a browser while the run goes on."""

import argparse
from typing import Any

from ._codes import FINE, CommandError, number

__all__ = ["HELP", "add_arguments", "run"]

HELP = "show the page about a run in a browser, renewed while the run goes on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Serves the page of `tensorpack report` on this machine alone (127.0.0.1), and prints its "
        "address. The page in the browser loads itself again. Ctrl-C ends it."
    )
    add = parser.add_argument
    add("directory", metavar="DIR", help="the log directory of a training, such as train_log/run")
    port = number("from 0 to 65535", lambda value: value in range(65536))
    add("--port", type=port, default=0, metavar="N", help="TCP port (default: a free one)")
    seconds = number("of at least 1", lambda value: 1 <= value < 1e6)
    text = "seconds between two reloads while the run goes on (default: %(default)s)"
    add("--every", type=seconds, default=5, metavar="S", help=text)


def run(args: Any) -> int:
    """Serves the page until Ctrl-C."""
    from tensorpack.report.watch import PageServer

    try:
        server = PageServer(args.directory, int(args.port), args.every)
    except ValueError as error:
        raise CommandError(str(error)) from error
    except (OSError, OverflowError) as error:
        raise CommandError(f"--port {args.port:.0f}: {error}. Leave it out.") from error
    with server:
        args.write(f"{server.url} shows {args.directory}. Ctrl-C ends this.")
        server.serve_forever()
    return FINE
