"""The command line of the data pipeline: `python -m tensorpack.dataflow bench|show|convert`.

The result goes to standard output, all else (log, progress, errors) to standard error. Exit codes:
0 done, 1 an error or a damaged file, 2 a wrong command line, 130 Ctrl-C.
"""

import contextlib
import sys
import traceback
from typing import Any, Optional, Sequence

from tensorpack.utils._streams import point_at_devnull

from ._cli.errors import told
from ._cli.parser import PROGRAM, make_parser

__all__ = ["main"]


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Does what a command line says; returns the exit code.

    Args:
      argv: the arguments; those of this program by default.

    Raises:
      SystemExit: with code 2 where the command line is wrong, 0 after `--help`.
    """
    args = make_parser().parse_args(argv)
    write = _Output(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return args.run(args, write)
    except KeyboardInterrupt:
        _complain("interrupted.", args)
        return 130
    except Exception as error:
        if args.traceback:
            trace = traceback.format_exception(type(error), error, error.__traceback__)
            sys.stderr.write("".join(trace))
        _complain(f"error: {told(error)}", args)
        return 1


class _Output:
    """Prints text; silent once nobody reads it any more."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __call__(self, text: str) -> None:
        try:
            self._write(text + "\n")
        except BrokenPipeError:
            point_at_devnull(self._stream)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            self._stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        self._stream.flush()


def _complain(text: str, args: Any) -> None:
    sys.stderr.write(f"{PROGRAM} {args.command}: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
