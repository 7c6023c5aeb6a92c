"""The DQN example as a program of its own, in a child process."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tensorpack.RL import find_rom

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "DeepQNetwork" / "DQN.py"


def breakout():
    """The path of a breakout.bin; skips the test where there is none.

    An old ale-py has no games; then the one of another virtual environment beside it serves.
    """
    try:
        return find_rom("breakout.bin")
    except FileNotFoundError:
        for path in ROOT.glob(".venv*/lib/python*/site-packages/ale_py/roms/breakout.bin"):
            return str(path)
    return pytest.skip("there is no breakout.bin")


class Program:
    """A running DQN.py, with what it has written so far; killed at the end of the `with` block.

    Attributes:
      lines: of standard output.
      errors: of standard error.
    """

    def __init__(self, cwd, *flags):
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.lines, self.errors = [], []
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *flags],
            cwd=str(cwd),
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        streams = [(self._process.stdout, self.lines), (self._process.stderr, self.errors)]
        self._readers = [threading.Thread(target=self._read, args=each) for each in streams]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))
        stream.close()

    def wait_for(self, text, seconds=60):
        """Waits until a line of standard output has this text in it."""
        deadline = time.monotonic() + seconds
        while not any(text in line for line in self.lines):
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{text!r} did not come:\n" + "\n".join(self.lines + self.errors))
            time.sleep(0.02)

    def interrupt(self):
        """Sends what Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    def wait(self, seconds=120):
        """Waits for the end; returns the exit code."""
        code = self._process.wait(seconds)
        for reader in self._readers:
            reader.join(5)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
