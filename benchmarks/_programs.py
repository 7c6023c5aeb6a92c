"""Runs programs: a function of a benchmark in a process of its own, or a script of a peer.

What is measured is the checkout that `BENCH_CHECKOUT` names, this one by default: its library comes
first in `sys.path`, here and in the processes, and its examples are what `example` finds.
"""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CHECKOUT = Path(os.environ.get("BENCH_CHECKOUT", str(ROOT)))
RATE = re.compile(r"^\w+/s: ([0-9.]+)$", re.MULTILINE)
RETURNED = "RETURNED "
LIMIT = 600  # seconds, after which a program is taken to hang

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's interpreter does not compile each time
sys.path[:0] = [str(CHECKOUT), str(HERE / "peers")]


def example(name):
    """Makes the modules of an example importable, in a process that imports those of no other."""
    sys.path.insert(0, str(CHECKOUT / "examples" / name))


def on_cores(cores, measure, *arguments, **options):
    """A side of a contest: what `measure` returns where it has so many cores."""

    def side():
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(allowed)[:cores])
        try:
            return measure(*arguments, **options)
        finally:
            os.sched_setaffinity(0, allowed)

    return side


def begin(command, python=sys.executable, checkout=CHECKOUT, **options):
    """Starts a script, or a function and its arguments; returns the process, which has `stdout`."""
    environment = dict(os.environ, PYTHONPATH=str(checkout), BENCH_CHECKOUT=str(checkout))
    if python != sys.executable:  # this project would hide the tensorpack of a peer
        del environment["PYTHONPATH"]
    if callable(command[0]):
        function, *arguments = command
        call = [function.__module__, function.__name__, arguments]
        command = [HERE / "_programs.py", json.dumps(call, default=str)]
    return subprocess.Popen(
        [str(python), *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        env=environment,
        **options,
    )


def output_of(*command, limit=LIMIT, **options):
    """What a program prints; the arguments are those of `begin`.

    Raises:
      RuntimeError: it failed, or took longer than the limit and was killed with its children.
    """
    is_outer = os.getsid(0) != os.getpid()  # or this process leads the session of the outer call
    with begin(command, start_new_session=is_outer, **options) as child:
        try:
            text, _ = child.communicate(timeout=limit)
        except BaseException as error:
            os.killpg(child.pid, signal.SIGKILL) if is_outer else child.kill()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            text = f"{child.communicate()[0]}\nkilled after {limit:.0f} s"
    if child.returncode:
        raise RuntimeError(f"{command} ended with {child.returncode}:\n{text}")
    return text


def fresh(function, *arguments):
    """What a function of this folder returns in a process of its own, as JSON has it."""
    return returned(output_of(function, *arguments))


def returned(text):
    """What the function returned that has printed this text."""
    return json.loads(text.rpartition(RETURNED)[2])


def rate_of(script, *flags, peer):
    """The number of a line such as "updates/s: 7.5" that a script of `peers/` prints."""
    python = ROOT / f".venv-peer-{peer}" / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{python} is missing: run make bench-peers, or add --alone.")
    text = output_of(HERE / "peers" / script, *flags, python=python)
    return float(RATE.search(text).group(1))


if __name__ == "__main__":
    module, name, arguments = json.loads(sys.argv[1])
    outcome = getattr(importlib.import_module(module), name)(*arguments)
    sys.stdout.write(RETURNED + json.dumps(outcome) + "\n")
