"""Reads the command line of `tensorpack`, runs a subcommand, and turns errors into exit codes."""

import argparse
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Optional, Sequence

from tensorpack._version import __version__

_PROGRAMS = {  # which read their own command lines, and what each does
    "launch": "start, watch and end the processes of a distributed run",
    "tf1": "run a script for TensorFlow 1, unchanged, on the TensorFlow that is installed",
}
# In the order of `tensorpack --help`: modules of this package, and other programs.
SUBCOMMANDS = ("doctor", "examples", "report", "inspect", "export", *_PROGRAMS)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_EPILOG = "Exit codes: 0 fine; 1 a problem was found; 2 a wrong command line or input; 130 Ctrl-C."


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, by default the arguments of the program; returns the exit code.

    Raises:
      SystemExit: with code 2 where the command line is wrong, 0 after `--help` and `--version`.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0] in _PROGRAMS:  # takes the place of this one, for signals and exit codes
        os.execv(sys.executable, [sys.executable, "-m", f"tensorpack.{argv[0]}", *argv[1:]])
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `__main__` has it up to here
        signal.signal(signal.SIGINT, signal.default_int_handler)
    args = make_parser().parse_args(argv)
    try:
        code = args.run(args)
        print(end="", flush=True)
        return code or 0
    except BrokenPipeError:  # the reader has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        sys.stderr.write(f"tensorpack {args.command}: interrupted.\n")
        return 130
    except Exception as error:
        if _is_expected(error):
            sys.stderr.write(f"tensorpack {args.command}: error: {error}\n")
        else:
            traceback.print_exc()
        return 2


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser with all subcommands; `run(args)` of what it parses runs one."""
    parser = argparse.ArgumentParser(
        prog="tensorpack",
        description="Looks after runs of tensorpack: describes the machine and a run, shows and "
        "exports checkpoints, starts scripts.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"tensorpack {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in SUBCOMMANDS:
        if name in _PROGRAMS:
            commands.add_parser(name, help=_PROGRAMS[name])
            continue
        module = import_module(f"tensorpack.command.{name}")
        text = module.HELP
        command = commands.add_parser(name, help=text, description=text, epilog=_EPILOG)
        command.set_defaults(run=module.run)
        module.add_arguments(command)
    return parser


def _is_expected(error: Exception) -> bool:
    """Returns whether the message of an error is enough, without its place."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = isinstance(error, (RuntimeError, ValueError)) and place.startswith(_PACKAGE + os.sep)
    return ours or isinstance(error, (ImportError, OSError))
