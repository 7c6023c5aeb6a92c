"""The command line `python -m tensorpack.launch --workers N [--ps N] SCRIPT [ARGUMENTS]`."""

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback, also while the rest is loaded

import argparse
import queue
import sys
from typing import Optional, Sequence

from tensorpack.utils._console import open_standard_descriptors
from tensorpack.utils._words import number
from tensorpack.utils.signals import handled

from ._group import Child, Group
from ._hosts import environments, on_this_machine
from ._output import Output


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, by default the arguments of the program; returns the exit code."""
    open_standard_descriptors()
    parser = _make_parser()
    args = parser.parse_args(argv)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    command = [sys.executable, *(command if args.module is None else ["-m", *args.module])]
    if command[1:] in ([], ["-m"]):
        parser.error("give a script, or -m and a module.")
    try:
        clusters = on_this_machine(args.workers, args.ps, args.port)
    except (OSError, OverflowError) as error:
        parser.error(f"the ports from {args.port} on cannot be used: {error}.")
    signums = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signums.append(signal.SIGHUP)
    events: queue.SimpleQueue[int] = queue.SimpleQueue()  # `put` may interrupt any other call
    with handled(signums, lambda signum, frame: events.put(signum)):
        output = Output()
        roles = zip(clusters, environments(clusters))
        processes = [Child(cluster, command, env, output) for cluster, env in roles]
        return Group(processes, output, events, args.grace).run()


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorpack.launch",
        usage="%(prog)s [options] [-m MODULE | SCRIPT] [ARGUMENTS]",
        description="Starts a script in several processes of this machine, which find each other "
        "by the variable TF_CONFIG, shows what they print, and ends all when one fails.",
        epilog="Exit codes: 0 all workers finished, 2 a wrong command line, 130 Ctrl-C, 143 "
        "SIGTERM, else that of the process that failed first (128 + n if signal n ended it).",
    )
    add, rest = parser.add_argument, argparse.REMAINDER
    one = number("from 1 on", lambda n: n >= 1, int)
    none = number("from 0 on", lambda n: n >= 0, int)
    seconds = number("of seconds", lambda s: 0 <= s < float("inf"))
    add("--workers", type=one, default=1, metavar="N", help="how many (1); worker 0 is the chief")
    add("--ps", type=none, default=0, metavar="N", help="how many parameter servers (0)")
    add("--port", type=one, default=0, metavar="P", help="the first port (free ones)")
    add("--grace", type=seconds, default=30.0, metavar="S", help="time to end after a signal (30)")
    add("-m", dest="module", nargs=rest, metavar="MODULE", help="run a module, not a script")
    add("command", nargs=rest, metavar="SCRIPT", help="the Python script and its arguments")
    return parser


if __name__ == "__main__":
    sys.exit(main())
