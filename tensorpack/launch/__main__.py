"""The command line `python -m tensorpack.launch --workers N [--ps N] SCRIPT [ARGUMENTS]`."""

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback, also while the rest is loaded

import argparse
import itertools
import os
import queue
import sys
import time
from contextlib import suppress
from typing import Callable, List, Optional, Sequence

from tensorpack.utils._console import open_standard_descriptors
from tensorpack.utils._words import number
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.signals import SignalListener

from . import _hosts
from ._environment import environments, shares
from ._group import Group, Outcome
from ._output import say

_PROGRAM = "python -m tensorpack.launch"
_USAGE_ERROR = 2
_NOT_RESTARTED = (0, _USAGE_ERROR, 128 + signal.SIGINT, 128 + signal.SIGTERM)
_LONGEST_PAUSE_SECONDS = 30.0
_NOTE = (
    "TensorFlow's servers listen on all interfaces of this machine, without authentication: let no "
    "untrusted network reach it."
)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Runs a command line, by default the arguments of the program; returns the exit code."""
    open_standard_descriptors()
    parser = make_parser()
    args = parser.parse_args(argv)
    try:
        command = _command(args)
        clusters = _hosts.on_this_machine(args.workers, args.ps, args.port)
    except (ValueError, OSError) as error:
        parser.error(str(error).rstrip(".") + ".")
    if len(clusters) > 1:
        say(_NOTE)
    events: queue.Queue[int] = queue.Queue()
    signums = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signums.append(signal.SIGHUP)
    with SignalListener(events.put, signums=signums):
        for attempt in itertools.count():
            outcome = _run_once(args, command, clusters, events, attempt)
            if outcome.stopped or outcome.code in _NOT_RESTARTED or attempt >= args.max_restarts:
                return outcome.code
            pause = min(2.0 ** min(attempt, 9), _LONGEST_PAUSE_SECONDS)
            say(f"The group is restarted in {pause:g} s ({attempt + 1} of {args.max_restarts}).")
            signum = _wait(events, pause)
            if signum:
                return 128 + signum
            clusters = _hosts.on_this_machine(args.workers, args.ps, args.port)
    raise AssertionError("the loop above ends by itself")


def _run_once(
    args: argparse.Namespace,
    command: Sequence[str],
    clusters: Sequence[Cluster],
    events: "queue.Queue[int]",
    attempt: int,
) -> Outcome:
    busy = _hosts.busy_ports(clusters)
    if busy:
        say(f"{'; '.join(busy)}: end what uses it, or choose another --port.")
        return Outcome(1)
    divided = shares(sum(cluster.job == "worker" for cluster in clusters))
    if attempt == 0:
        say(divided.news)
    group = Group(
        clusters,
        command,
        environments(clusters, divided, attempt),
        events,
        grace=args.grace,
    )
    return group.run()


def _wait(events: "queue.Queue[int]", seconds: float) -> int:
    """Waits, and returns the signal that ended it early; 0 if none did."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(queue.Empty):
            signum = events.get(timeout=max(0.0, end - time.monotonic()))
            if signum not in (0, signal.SIGCHLD):
                return signum
    return 0


def _command(args: argparse.Namespace) -> List[str]:
    if args.module is not None:
        if not args.module:
            raise ValueError("-m needs the name of a module")
        return [sys.executable, "-m", *args.module]
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise ValueError("give a script, or -m and a module")
    if not os.path.exists(command[0]):
        raise ValueError(f"the script {command[0]!r} does not exist")
    return [sys.executable, *command]


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} [options] SCRIPT [ARGUMENTS]\n"
        f"       {_PROGRAM} [options] -m MODULE [ARGUMENTS]",
        description="Starts a script in several processes, which find each other by the variable "
        "TF_CONFIG, and ends all when one fails.",
        epilog="Exit codes: 0 all workers finished, 2 a wrong command line, 130 Ctrl-C, 143 "
        "SIGTERM, else that of the process that failed first (128 + n if signal n ended it). What "
        "the processes print is passed on line by line, with their names before it.",
    )
    add = parser.add_argument
    text = "how many workers to start (1); worker 0 is the chief"
    add("--workers", type=_number(1), default=1, metavar="N", help=text)
    text = "how many parameter servers to start (0)"
    add("--ps", type=_number(0), default=0, metavar="N", help=text)
    text = "port of the first process; the others have those that follow (free ones)"
    add("--port", type=_number(1, most=65535), metavar="PORT", help=text)
    text = "restart the group after a failure, up to N times (%(default)s). The script resumes "
    text += 'from its last state if it asks for that, by resume="auto"'
    add("--max-restarts", type=_number(0), default=0, metavar="N", help=text)
    text = "time to end after Ctrl-C or SIGTERM, before the processes are killed (%(default)g)"
    seconds = number("of seconds", lambda s: 0 <= s < float("inf"))
    add("--grace", type=seconds, default=30.0, metavar="S", help=text)
    text = "run a module instead of a script; what follows its name are its arguments"
    add("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help=text)
    text = "the Python script and its arguments"
    add("command", nargs=argparse.REMAINDER, metavar="SCRIPT", help=text)
    return parser


def _number(least: int, most: int = 10000) -> Callable[[str], int]:
    def digits(text: str) -> int:  # `int` also takes 1_0, and digits of other scripts
        return int(text) if text.isascii() and text.isdigit() else -1

    return number(f"of {least} to {most}", lambda n: least <= n <= most, digits)


if __name__ == "__main__":
    sys.exit(main())
