"""The command line of the data pipeline: `python -m tensorpack.dataflow bench|show|convert`.

The result goes to standard output; log, progress and errors go to standard error.
"""

import contextlib
import sys
import traceback
from pathlib import Path
from typing import Any, Optional, Sequence

from tensorpack.utils._console import point_at_devnull
from tensorpack.utils.worker_errors import WorkerTraceback

from ._cli import CommandError, printable
from ._cli.parser import PROGRAM, make_parser
from ._files import DamagedFile

__all__ = ["main"]

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, by default the arguments of the program; returns the exit code.

    Raises:
      SystemExit: with code 2 where the command line is wrong, 0 after `--help`.
    """
    args = make_parser().parse_args(argv)
    stdout = sys.stdout
    try:
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
    _print(sys.stderr, f"{PROGRAM} {args.command}: {message}")
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
    if text and (ours or type(error) is ImportError):
        return text
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    if by_worker:
        place = " (in a worker process)"
    return f"{type(error).__name__}: {text}{place}. --traceback shows more."


if __name__ == "__main__":
    sys.exit(main())
