"""Runs the launcher on small scripts, as a user would."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap

from tests.checks import ROOT
from tests.processes import gone, wait_until

PRELUDE = """
import os, signal, sys, time
from tensorpack.utils.cluster import Cluster
me = Cluster.from_environment()
"""


def command(path, body, *options, arguments=()):
    """The command line for a script that knows itself as the cluster `me`."""
    script = path / "script.py"
    script.write_text(PRELUDE + textwrap.dedent(body), encoding="utf-8")
    return [sys.executable, "-m", "tensorpack.launch", *options, str(script), *arguments]


def environment(**changes):
    """Variables for the launcher: ours alone, without what this test run was started with."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), **changes}


def launch(path, body, *options, arguments=(), env=None, **streams):
    """Runs a group to its end; `code`, `out` and `err` of what is returned are text."""
    args = command(path, body, *options, arguments=arguments)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(args, env=environment(**(env or {})), text=True, timeout=30, **streams)


@contextlib.contextmanager
def started(path, body, *options):
    """Starts a group, as the leader of a process group; yields once all have printed "ready"."""
    args = command(path, body, *options)
    process = subprocess.Popen(
        args,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    number = sum(int(n) for flag, n in zip(options, options[1:]) if flag in ("--workers", "--ps"))
    try:
        process.before = ""
        while process.before.count("] ready") < number:
            line = process.stdout.readline()
            assert line, process.before
            process.before += line
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def is_gone(pid):
    """Waits until a process has ended, which it must within five seconds; returns True."""
    return wait_until(lambda: gone(pid), 5)
