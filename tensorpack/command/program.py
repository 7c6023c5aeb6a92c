"""Reads the command line of `tensorpack`, runs a subcommand, and turns errors into exit codes."""

import argparse
import contextlib
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Any, List, Optional, Sequence

from tensorpack._version import __version__
from tensorpack.utils._words import did_you_mean

from ._common import INTERRUPTED, WRONG, CommandError

# In the order of `tensorpack --help`: modules of this package, and other programs.
SUBCOMMANDS = ("doctor", "examples", "report", "inspect", "export", "launch", "tf1")
_PROGRAMS = {  # which read their own command lines, and what each does
    "launch": "start, watch and end the processes of a distributed run",
    "tf1": "run a script for TensorFlow 1, unchanged, on the TensorFlow that is installed",
}
_PROGRAM = "tensorpack"
_EPILOG = (
    "Exit codes: 0 fine; 1 a problem was found; 2 a wrong command line or input; 130 Ctrl-C. "
    "Results go to standard output, logs and errors to standard error."
)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, by default the arguments of the program; returns the exit code.

    Raises:
      SystemExit: with code 2 where the command line is wrong, 0 after `--help` and `--version`.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    stdout = sys.stdout
    name = argv[0] if argv else ""
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        args = _parse(argv)
        name = args.command
        args.write = lambda text: _print(stdout, text)
        with contextlib.redirect_stdout(sys.stderr):
            return int(args.run(args))
    except KeyboardInterrupt:
        message, code = "interrupted.", INTERRUPTED
    except Exception as error:
        if "--traceback" in argv:
            traceback.print_exc()
        message, code = f"error: {_in_a_line(error)}", WRONG
    _print(sys.stderr, f"{_PROGRAM} {name}: {message}")
    return code


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser with all subcommands; `run(args)` of what it parses runs one."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Looks after runs of tensorpack: describes the machine and a run, shows and "
        "exports checkpoints, starts scripts.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"tensorpack {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in SUBCOMMANDS:
        if name in _PROGRAMS:
            commands.add_parser(name, help=_PROGRAMS[name])
            continue
        module = import_module(f"tensorpack.command.{name}")
        text = module.HELP
        each = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=_EPILOG
        )
        each.set_defaults(run=module.run)
        module.add_arguments(each)
        text = "with an error, show where it comes from"
        each.add_argument("--traceback", action="store_true", help=text)
    return parser


def _parse(argv: List[str]) -> Any:
    name = argv[0] if argv else ""
    if name and not name.startswith("-") and name not in SUBCOMMANDS:
        near = did_you_mean(name, SUBCOMMANDS) or f" There are {', '.join(SUBCOMMANDS)}."
        sys.stderr.write(f"{_PROGRAM}: error: there is no subcommand {name!r}.{near}\n")
        raise SystemExit(WRONG)
    if name in _PROGRAMS:
        return argparse.Namespace(command=name, run=_become, rest=argv[1:])
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help(sys.stderr)
        raise SystemExit(WRONG)
    return args


def _become(args: Any) -> int:
    """Replaces this process by another program, with all that follows its name, `--help` too.

    So signals, standard streams and the exit code are those of that program.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", f"tensorpack.{args.command}", *args.rest])


def _print(stream: Any, text: str) -> None:
    """Prints a text; does nothing once the reader has gone, or without a stream (`>&-`)."""
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write((text + "\n").encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        from tensorpack.utils._console import point_at_devnull

        point_at_devnull(stream)


def _in_a_line(error: Exception) -> str:
    """Returns the message of an expected error, and the type and place of any other."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    text = " ".join(text.split())
    frames = traceback.extract_tb(error.__traceback__)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    raised_here = bool(frames) and frames[-1].filename.startswith(package + os.sep)
    expected = isinstance(error, (CommandError, OSError)) or type(error) is ImportError
    ours = raised_here and isinstance(error, (ImportError, RuntimeError, ValueError))
    if text and (expected or ours):
        return text
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{place}. --traceback shows more."
