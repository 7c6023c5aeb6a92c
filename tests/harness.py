"""Starts a real child process, waits for a mark that it prints, and sees how it ends."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What must never be printed by a run that is stopped: TensorFlow's warning about a queue that was
# left open, tracebacks, and the last words of interpreters and processes that die badly.
NEVER = ("Skipping cancelled", "Traceback", "Fatal Python", "Segmentation", "core dumped")


class Child:
    """A child process whose output is collected while it runs.

    Args:
      args: of the interpreter, the script first.
      env: added to the environment.
    """

    def __init__(self, *args, env=None):
        environ = dict(os.environ, PYTHONPATH=str(ROOT), **(env or {}))
        environ.pop("TF_CPP_MIN_LOG_LEVEL", None)  # at level 2 it hides the warnings we look for
        self.process = subprocess.Popen(
            [sys.executable, "-u"] + [str(each) for each in args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environ,
            universal_newlines=True,
            errors="replace",
            start_new_session=True,
        )
        self.lines = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    @property
    def output(self):
        """All that it has printed so far."""
        return "".join(self.lines)

    def wait_for(self, text, timeout=120):
        """Blocks until the child has printed `text`."""
        deadline = time.monotonic() + timeout
        with self._news:
            while not any(text in line for line in self.lines):
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    raise AssertionError(f"never printed {text!r}:\n{self.output}")
                self._news.wait(min(left, 0.2))

    def send(self, signum, group=False):
        """Sends a signal to the child, or to its whole process group as a terminal does."""
        if group:
            os.killpg(self.process.pid, signum)
        else:
            self.process.send_signal(signum)

    def end(self, timeout):
        """Waits for the end; returns the exit code. Kills it if it takes too long."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self._reader.join()
            self.process.stdout.close()
            raise AssertionError(f"still running after {timeout} s:\n{self.output}") from None
        finally:
            self._reader.join(5)
        if self._reader.is_alive():  # to close what it reads would block
            raise AssertionError(f"a process of the child still holds its output:\n{self.output}")
        self.process.stdout.close()
        return code
