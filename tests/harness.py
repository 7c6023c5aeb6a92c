"""Starts a real child process, waits for a mark that it prints, and sees how it ends."""

import json
import os
import signal
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
      args: of the interpreter, the script first; or of the `main` of the module.
      env: added to the environment.
      zygote: if given, a copy of that runs the module.
      module: its name.
    """

    def __init__(self, *args, env=None, zygote=None, module=None):
        args = [str(each) for each in args]
        output, written = os.pipe()
        try:
            if zygote is None:
                self.process = subprocess.Popen(
                    [sys.executable, "-u", *args],
                    stdout=written,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env=_environ(env),
                    start_new_session=True,
                    preexec_fn=_hear_sigint,
                )
            else:
                self.process = zygote.start(module, args, _environ(env), written)
        finally:
            os.close(written)
        self.lines = []
        self._output = open(output, errors="replace")
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._output:
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
            self._output.close()
            raise AssertionError(f"still running after {timeout} s:\n{self.output}") from None
        finally:
            self._reader.join(5)
        if self._reader.is_alive():  # to close what it reads would block
            raise AssertionError(f"a process of the child still holds its output:\n{self.output}")
        self._output.close()
        return code


class Zygote:
    """The process of `tests/zygote.py`; a context.

    Args:
      environ: added to its environment.
    """

    def __init__(self, **environ):
        self._environ = environ

    def __enter__(self):
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environ(
                {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **self._environ}
            ),
            start_new_session=True,
            universal_newlines=True,
        )
        return self

    def __exit__(self, *exc_info):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, folder, *words, env=None):
        """Starts `python WORDS...` in a folder, see `run_page`; returns the `Child`."""
        return Child(folder, *words, env=env, zygote=self, module="tests.run_page")

    def start(self, module, args, environ, output):
        """Starts a copy that runs `main(*args)` of a module and writes into a descriptor.

        Returns:
          what has the methods of `subprocess.Popen` that are used here.
        """
        path = f"/proc/{os.getpid()}/fd/{output}"
        request = {"module": module, "args": args, "environ": environ, "output": path}
        process = _Copy(self, self.ask(request))
        while os.getpgid(process.pid) != process.pid:  # it has opened the output, too
            time.sleep(0.001)
        return process

    def ask(self, request):
        """Sends a request; returns the answer."""
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


class _Copy:
    """A copy of the zygote."""

    def __init__(self, zygote, pid):
        self.pid = pid
        self.returncode = None
        self._zygote = zygote

    def poll(self):
        if self.returncode is None:
            status = self._zygote.ask({"status_of": self.pid})
            if status is not None:
                killed = os.WIFSIGNALED(status)
                self.returncode = -os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
        return self.returncode

    def wait(self, timeout=None):
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.005)
        return self.returncode

    def send_signal(self, signum):
        if self.poll() is None:
            os.kill(self.pid, signum)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _environ(more):
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **(more or {})}
    environ.pop("TF_CPP_MIN_LOG_LEVEL", None)  # at level 2 it hides the warnings we look for
    return environ


def _hear_sigint():
    """In a child: SIGINT is not ignored, although it may be for a background job of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
