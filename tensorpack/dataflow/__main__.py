"""The command line of the data pipeline: `python -m tensorpack.dataflow bench|show|convert`.

The result goes to standard output; log, progress and errors go to standard error.
"""

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while the rest is loaded

import argparse
import contextlib
import operator
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from tensorpack.utils._console import point_at_devnull
from tensorpack.utils._tracebacks import notes_of
from tensorpack.utils._words import number
from tensorpack.utils.workers.worker_errors import WorkerTraceback

from ._cli import CommandError, printable
from ._cli.bench import bench
from ._cli.files import convert, show
from ._cli.formats import KNOWN
from .files.records import DamagedFile

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_PROGRAM = "python -m tensorpack.dataflow"
_FILE = "the file, or the folder of an LMDB database"
_names = operator.methodcaller("split", ",")


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, by default the arguments of the program; returns the exit code.

    Raises:
      SystemExit: with code 2 where the command line is wrong, 0 after `--help`.
    """
    args = _make_parser().parse_args(argv)
    stdout = sys.stdout
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.redirect_stdout(sys.stderr):
            return args.run(args, lambda text: _print(stdout, text))
    except KeyboardInterrupt:
        message, code = "interrupted.", 130
    except SystemExit as error:
        message, code = f"error: the module ended the program with code {error.code!r}.", 1
    except Exception as error:
        if args.traceback:
            traceback.print_exc()
        message, code = f"error: {_in_a_line(error)}", 1
    _print(sys.stderr, f"{_PROGRAM} {args.command}: {message}")
    return code


def _print(stream: Any, text: str) -> None:
    """Prints a text without control characters; does nothing once the reader has gone."""
    text = printable(text, kept="\n") + "\n"
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        point_at_devnull(stream)


def _in_a_line(error: Exception) -> str:
    """Returns an error of this package as it is, and any other with its type and place."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    frames = traceback.extract_tb(error.__traceback__)
    by_worker = isinstance(error.__cause__, WorkerTraceback)
    ours = bool(frames) and frames[-1].filename.startswith(_PACKAGE) and not by_worker
    ours = ours and isinstance(error, (KeyError, RuntimeError, TypeError, ValueError))
    ours = ours or isinstance(error, (CommandError, DamagedFile, OSError))
    notes = "".join(f" {note}" for note in notes_of(error))
    if text and (ours or type(error) is ImportError):
        return text + notes
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    if by_worker:
        place = " (in a worker process)"
    kind = type(error)
    known = kind.__module__ == "builtins" or kind.__module__.startswith("tensorpack.")
    name = kind.__name__ if known else f"{kind.__module__}.{kind.__name__}"
    return f"{name}: {text.strip()}{place}.{notes} --traceback shows more."


def _make_parser() -> argparse.ArgumentParser:
    """Returns the parser; `run(args, write)` of the arguments that it gives runs the command."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Measures dataflows, and shows and converts files of datapoints.",
        epilog="Exit codes: 0 done, 1 an error or a damaged file, 2 a wrong command line, 130 "
        "Ctrl-C. The result goes to standard output, log and progress to standard error.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_bench(_command(commands, "bench", bench, "measure how fast a flow gives its datapoints"))
    _add_show(_command(commands, "show", show, "show what is in a file of datapoints, or a flow"))
    _add_convert(_command(commands, "convert", convert, "write a file in another format"))
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(run=run)
    parser.add_argument(
        "--traceback", action="store_true", help="with an error, show where it comes from"
    )
    return parser


def _add_bench(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "flow",
        metavar="FLOW",
        type=_flow,
        help="module:name or path/to/file.py:name, the name of a DataFlow, or of a function "
        "without arguments that returns one. The module is run: name only one that you trust",
    )
    text = "datapoints to measure, at most, in as many passes as that takes (%(default)s)"
    add("--size", type=_number(1), default=5000, metavar="N", help=text)
    text = "time to measure, at most, of all stages together (%(default)s)"
    add("--seconds", type=_number(0, float), default=10.0, metavar="S", help=text)
    text = "datapoints to take first, which do not count (%(default)s)"
    add("--warmup", type=_number(0), default=1, metavar="N", help=text)
    text = "run the flow in N processes, by MultiProcessRunnerZMQ"
    add("--processes", type=_number(1), metavar="N", help=text)
    add("--stages", action="store_true", help="measure each flow that FLOW is made of as well")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{parser.description} The contents tell the format, or the name: {KNOWN}."
    text = f"{_FILE}, or a flow as in bench"
    parser.add_argument("file", metavar="FILE|FLOW", help=text)
    text = "how many datapoints to show (1, or 16 as images)"
    parser.add_argument("--num", type=_number(0), metavar="N", help=text)
    text = "write the images of these datapoints, side by side, to OUT, such as sheet.png"
    parser.add_argument("--images", metavar="OUT", help=text)
    parser.add_argument("--bgr", action="store_true", help="the images are in BGR, not in RGB")
    text = "read the whole file, list what is damaged, and exit with 1 if there is any"
    parser.add_argument("--check", action="store_true", help=text)
    _add_input_options(parser)


def _add_convert(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("input", metavar="IN", help=_FILE)
    add("output", metavar="OUT", help="the new file; its suffix is the format, such as .lmdb")
    add("--force", action="store_true", help="replace OUT if it exists, when the new is complete")
    text = "leave out up to N damaged records, and list them (%(default)s)"
    add("--max-errors", type=_number(0), default=0, metavar="N", help=text)
    text = "run what pickles in a file of old tensorpack say, if you trust it"
    add("--allow-pickle", action="store_true", help=text)
    _add_input_options(parser)


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "the datasets of an HDF5 file, or the columns of a Parquet file (all)"
    add("--paths", type=_names, metavar="NAME,...", help=text)
    text = "of the columns of a CSV file, one for each or one for all, such as float32 (str)"
    add("--dtypes", type=_names, metavar="DTYPE,...", help=text)
    add("--no-header", action="store_true", help="a CSV file has no names in its first line")


def _flow(text: str) -> str:
    if not all(text.rpartition(":")):
        raise argparse.ArgumentTypeError(f"{text!r} is not module:name or path/to/file.py:name")
    return text


def _number(least: int, kind: Callable[[str], Any] = int) -> Callable[[str], Any]:
    return number(f"of at least {least}", lambda n: n >= least, kind)


if __name__ == "__main__":
    sys.exit(main())
