"""Starts the processes of a group, waits for them, and ends all if one fails or a signal comes."""

import functools
import os
import queue
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Mapping, Optional, Sequence

from tensorpack.utils._console import same_screen
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.workers.processes import set_parent_death_signal

from ._output import STDERR, STDOUT, Output

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SETTLE_SECONDS = 1.0  # for the others to end by themselves, when one has failed
_TERM_SECONDS = 5.0  # to end after SIGTERM
_LAST_SECONDS = 1.0  # for what an ended process has left running, and for a reader that pauses
_POLL_SECONDS = 0.1


class Child:
    """A process, in a session of its own; it is killed if the thread that started it dies."""

    code: Optional[int] = None  # its end as in `subprocess`
    is_signalled = False  # to end
    is_cleared = False  # it has ended, and what it had left running is killed

    def __init__(
        self, cluster: Cluster, command: Sequence[str], env: Mapping[str, str], output: Output
    ) -> None:
        self.name, self.is_worker = cluster.name, cluster.job == "worker"
        self._address, self._started_at = cluster.address, time.monotonic()
        merged = same_screen(sys.stdout, sys.stderr)  # one stream, so that the order is kept
        self._process = process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            start_new_session=True,
            preexec_fn=functools.partial(set_parent_death_signal, signal.SIGKILL, os.getpid()),
        )
        pipes = [(process.stdout, STDOUT), (process.stderr, STDERR)]
        self._readers = [output.add(self.name, pipe.fileno(), to) for pipe, to in pipes if pipe]

    def look(self) -> bool:
        """Kills what an ended process has left running; returns whether it has ended just now."""
        if self.code is None:
            self.code, self._ended_at = self._process.poll(), time.monotonic()
            return self.code is not None
        is_read = not any(reader.is_alive() for reader in self._readers)
        is_late = time.monotonic() > self._ended_at + _LAST_SECONDS
        if not self.is_cleared and (is_read or is_late):
            self.is_cleared = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return False

    def send(self, signum: int) -> None:
        """Sends a signal to the process, not to those that it has started: they are its own."""
        self.is_signalled = True
        self._process.send_signal(signum)
        self._process.send_signal(signal.SIGCONT)  # one that is stopped would not hear it

    def __str__(self) -> str:
        code, seconds = self._process.returncode, self._ended_at - self._started_at
        name = signal.Signals(-code).name if code < 0 else ""
        how = f"was killed by {name}" if name else f"exited with code {code}"
        return f"{self.name} ({self._address}) {how} after {seconds:.1f} s"


class Group:
    """Waits for processes, and ends all; `events` has the signals, `grace` is for them, in s."""

    def __init__(
        self, procs: Sequence[Child], output: Output, events: "queue.SimpleQueue[int]", grace: float
    ) -> None:
        self._procs, self._output, self._events, self._grace = procs, output, events, grace
        self._code = self._num_signals = 0
        self._term_at = self._kill_at = self._patience = float("inf")

    def run(self) -> int:
        """Waits on the main thread until all have ended; returns the exit code for the shell."""
        while not all(proc.is_cleared for proc in self._procs):
            self._hear()
            self._look()
            self._end_others()
        self._output.finish()
        end = time.monotonic() + self._patience
        while self._output.is_open() and time.monotonic() < end and not self._hear():
            pass
        return self._code

    def _hear(self) -> bool:
        """Waits for an event, not for long; returns whether it was a signal, which is passed on."""
        with suppress(queue.Empty):
            signum = self._events.get(timeout=_POLL_SECONDS)
            if signum in _STOP_SIGNALS:
                self._code = self._code or 128 + signum
                self._num_signals += 1
                grace = self._grace if self._num_signals < 3 else 0.0
                self._kill_at = min(self._kill_at, time.monotonic() + grace)
                self._patience = self._grace if self._num_signals == 1 else _LAST_SECONDS
                self._output.say(f"{signal.Signals(signum).name} passed on: {grace:g} s to end.")
                for proc in self._procs:
                    if proc.is_worker and proc.code is None:  # it may need the servers to save
                        proc.send(signum)
                return True
        return False

    def _look(self) -> None:
        # Of several that are seen at once, one that was killed can hardly be a consequence.
        for proc in sorted(filter(Child.look, self._procs), key=lambda p: p.code or 0):
            if proc.code and not (self._code or proc.is_signalled):
                self._code = proc.code if proc.code > 0 else 128 - proc.code
                self._term_at = time.monotonic() + _SETTLE_SECONDS
                self._output.say(f"First to end: {proc}.")

    def _end_others(self) -> None:
        """Ends the others after a failure, the servers after the last worker, all that is late."""
        now, alive = time.monotonic(), [proc for proc in self._procs if proc.code is None]
        workers = [proc for proc in alive if proc.is_worker]  # they may need the servers to save
        unsignalled = [proc for proc in workers or alive if not proc.is_signalled]
        if unsignalled and (now >= self._term_at or not workers):
            self._kill_at = now + min(self._grace, _TERM_SECONDS)
            for proc in unsignalled:
                proc.send(signal.SIGTERM)
        elif alive and now >= self._kill_at:
            self._kill_at, self._patience = float("inf"), _LAST_SECONDS
            self._output.say(f"Killed: {', '.join(proc.name for proc in alive)}.")
            for proc in alive:
                proc.send(signal.SIGKILL)
