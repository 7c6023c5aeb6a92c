"""What the tests of this package share: a child Python, a terminal, a clock, a log to write to."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from tensorpack.utils import logger
from tests.checks import ROOT
from tests.clock import FakeClock


@pytest.fixture
def own_log():
    """Closes the log directory that a test has set."""
    yield
    logger.close_logger_dir()


@pytest.fixture
def run_python(tmp_path):
    """Runs code in a Python of its own, in a directory of its own; returns the finished process."""

    def run(code, **options):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
        return subprocess.run(
            [sys.executable, "-c", code],
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE),
            stdin=options.pop("stdin", subprocess.DEVNULL),
            text=options.pop("text", True),
            env=environment,
            cwd=str(tmp_path),
            timeout=60,
            **options,
        )

    return run


@pytest.fixture
def run_in_terminal(run_python):
    """Runs code on a terminal, with answers typed; returns the exit code and the screen's bytes."""

    def run(code, typed="", **options):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 80, 0, 0))
        try:
            os.write(ours, typed.encode())
            done = run_python(code, stdin=theirs, stdout=theirs, stderr=theirs, **options)
            os.write(theirs, b"<end>")
            screen = b""
            while not screen.endswith(b"<end>"):
                screen += os.read(ours, 1 << 16)
            return done.returncode, screen[: -len(b"<end>")].decode()
        finally:
            os.close(ours)
            os.close(theirs)

    return run


@pytest.fixture
def clock():
    """A clock that is set by hand, in seconds: `clock.now += 2`."""
    return FakeClock(100.0)
