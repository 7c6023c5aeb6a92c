"""Starts the processes of a group, waits for them, and ends all if one fails or a signal comes."""

import functools
import os
import queue
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tensorpack.utils._console import is_terminal, same_screen
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.workers.processes import set_parent_death_signal

from ._output import STDERR, STDOUT, Line, Output

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SETTLE_SECONDS = 1.0  # for the others to end by themselves, when one has failed
_CAUSE_SECONDS = 5.0  # the same, when that one has only missed another
_FAILED_GRACE_SECONDS = 5.0  # for the others, when they are told to end
_SERVERS_GRACE_SECONDS = 5.0
_LEFTOVER_SECONDS = 1.0  # for what a process has left running
_TICK_SECONDS = 1.0
_MOST_SIGNALS = 3
_LOST = re.compile(rb"tensorpack\.[\w.]*PeerLost\b")  # an error after that of another
_TRACEBACK = (b"Traceback (most recent call last)", b"Fatal Python error")
_TRACEBACK_SECONDS = 30.0
_SHOWN_LINES = 30


class Outcome(NamedTuple):
    """How a group has ended."""

    code: int  # for the shell
    stopped: bool = False  # by a signal to the launcher


class Group:
    """Runs one command in several processes of this machine.

    * Each process has a session of its own, so a Ctrl-C of the terminal reaches only this program,
      which passes it on once. All are killed when this program dies, even by SIGKILL.
    * If one fails, the others are sent SIGTERM after a second (5 s if it has only missed another
      one), and have at most 5 s more to end.
    * Parameter servers are ended when no worker is left.

    Args:
      clusters: the role of each process.
      command: the program and its arguments.
      environments: all variables of each process.
      events: delivers the signals that this program hears, SIGCHLD among them; the group puts in
        zeros to wake itself. To be made before `run` by a `SignalListener`.
      grace: seconds from the first signal until the processes are killed.
    """

    def __init__(
        self,
        clusters: Sequence[Cluster],
        command: Sequence[str],
        environments: Sequence[Mapping[str, str]],
        events: "queue.Queue[int]",
        *,
        grace: float,
    ) -> None:
        coloured = is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")
        self.output = Output(coloured, functools.partial(events.put, 0))
        self._members = [_Member(*each) for each in zip(clusters, environments)]
        self._command = list(command)
        self._events = events
        self._grace = grace
        self._started_at = time.monotonic()
        self._signals: List[int] = []  # that this program was sent
        self._first_failed: Optional[_Member] = None
        self._tell_at: Optional[float] = None  # when the others are told to end
        self._kill_at: Optional[float] = None

    def run(self) -> Outcome:
        """Runs all processes to their ends; call it on the main thread."""
        try:
            self._start()
        except OSError as error:
            self._kill()
            self.output.say(f"A process cannot be started: {error}.")
            return Outcome(1)
        self.output.start()
        while any(each.is_alive or self.output.is_open(each.name) for each in self._members):
            with suppress(queue.Empty):
                self._hear(self._events.get(timeout=self._patience()))
            self._look_at_members()
            self._end_servers()
            if self._tell_at is not None and time.monotonic() >= self._tell_at:
                self._tell_others()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._kill()
        self.output.join()
        return self._judge()

    def _start(self) -> None:
        # On one screen the two streams of a process are one, so that their order is kept.
        merged = same_screen(sys.stdout, sys.stderr)
        for member in self._members:
            member.start(self._command, subprocess.STDOUT if merged else subprocess.PIPE)
            for pipe, sink in ((member.process.stdout, STDOUT), (member.process.stderr, STDERR)):
                if pipe is not None:
                    self.output.add(member.name, os.dup(pipe.fileno()), sink)
                    pipe.close()

    def _patience(self) -> float:
        now = time.monotonic()
        ends = [each for each in (self._tell_at, self._kill_at) if each is not None]
        ends += [
            member.ended_at + _LEFTOVER_SECONDS
            for member in self._members
            if member.ended_at is not None and not member.is_cleared
        ]
        return min([_TICK_SECONDS, *(max(0.01, end - now) for end in ends)])

    def _hear(self, signum: int) -> None:
        if signum not in _STOP_SIGNALS:
            return
        self._signals.append(signum)
        name = signal.Signals(signum).name
        if len(self._signals) >= _MOST_SIGNALS:
            self.output.say(f"{name} again: all processes are killed.")
            self._kill()
            return
        if len(self._signals) == 1:
            self.output.say(f"{name}: passed on to the processes, which have {self._grace:g} s.")
            self._kill_at = min(self._kill_at or float("inf"), time.monotonic() + self._grace)
        for member in self._members:
            # The workers may need the parameter servers until they have saved.
            if member.is_alive and member.is_worker:
                member.send(signum)
        if not any(member.is_alive for member in self._members):
            self.output.abandon_reader()

    def _look_at_members(self) -> None:
        ended = [member for member in self._members if member.is_alive and member.has_ended()]
        # Of several that are seen at once, one that was killed can hardly be a consequence.
        for member in sorted(ended, key=lambda member: member.code <= 128):
            if member.code != 0 and member.told_at is None and not self._signals:
                self._react_to_failure(member)
        for member in self._members:
            if member.ended_at is not None and not member.is_cleared:
                waited = time.monotonic() - member.ended_at
                if waited > _LEFTOVER_SECONDS or not self.output.is_open(member.name):
                    member.clear()
        if all(member.is_cleared for member in self._members):
            self.output.abandon_pipes()  # what still holds one has left its session

    def _react_to_failure(self, member: "_Member") -> None:
        if self._first_failed is not None:
            return
        self._first_failed = member
        now, missed_another = time.monotonic(), _names_another(self.output.tail(member.name))
        settle = _CAUSE_SECONDS if missed_another else _SETTLE_SECONDS
        self._tell_at = now + min(self._grace, settle)
        self.output.say(f"{member.describe()} after {now - self._started_at:.1f} s.")

    def _tell_others(self) -> None:
        self._tell_at = None
        others = [member for member in self._members if member.is_alive]
        if others:
            self.output.say(f"{', '.join(other.name for other in others)}: told to end.")
            self._kill_at = time.monotonic() + min(self._grace, _FAILED_GRACE_SECONDS)
        for other in others:
            other.send(signal.SIGTERM)

    def _end_servers(self) -> None:
        """Ends the parameter servers when no worker is left that they could serve."""
        servers = [member for member in self._members if member.is_alive and not member.is_worker]
        if any(member.is_alive and member.is_worker for member in self._members):
            return
        if not servers or all(server.told_at is not None for server in servers):
            return
        for server in servers:
            server.send(signal.SIGTERM)
        self._kill_at = time.monotonic() + _SERVERS_GRACE_SECONDS

    def _kill(self) -> None:
        for member in self._members:
            if member.is_alive:
                member.send(signal.SIGKILL)
        self.output.abandon_reader()

    def _judge(self) -> Outcome:
        first = self._first_failed
        if self._signals and first is None:
            for member in self._members:
                if member.is_worker and member.code not in (0, *(128 + n for n in _STOP_SIGNALS)):
                    self.output.say(member.describe() + " while it was stopped.")
            return Outcome(128 + self._signals[0], stopped=True)
        if first is None:
            return Outcome(0)
        tails = {member.name: self.output.tail(member.name) for member in self._members}
        failed = [m for m in self._members if m.code and m.failed_by_itself(tails[m.name])]
        first = min(failed, key=lambda m: m.order_of_failure(tails[m.name]), default=first)
        if first.told_at is not None and first.code > 128:
            first.code = 1  # that of its traceback; the signal to all met it while it was ending
        tail = tails[first.name][-_SHOWN_LINES:]
        lines = [f"    {line.text.decode('utf-8', 'replace')}" for line in tail]
        what = "Its last lines:" if lines else "It has printed nothing."
        self.output.say("\n".join([f"First to fail: {first.describe()}. {what}", *lines]))
        return Outcome(first.code or 1, stopped=bool(self._signals))


class _Member:
    """A process of the group, with all that is known of its end."""

    process: Any = None

    def __init__(self, cluster: Cluster, env: Mapping[str, str]) -> None:
        self.cluster = cluster
        self._env = env
        self.name = cluster.name
        self.is_worker = cluster.job == "worker"
        self.code = 0  # as the shell gives it, once it has ended
        self.ended_at: Optional[float] = None
        self.told_at: Optional[float] = None  # when it was first told to end
        self.is_cleared = False

    def start(self, args: Sequence[str], stderr: int) -> None:
        """Starts the process in a session of its own, to be killed when this thread ends."""
        self.process = subprocess.Popen(
            args,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=functools.partial(
                set_parent_death_signal, signal.SIGKILL, parent_pid=os.getpid()
            ),
        )

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.ended_at is None

    def has_ended(self) -> bool:
        """Asks the system, and keeps the exit code."""
        code = self.process.poll()
        if code is None:
            return False
        self.code = 128 - code if code < 0 else code
        self.ended_at = time.monotonic()
        return True

    def send(self, signum: int) -> None:
        """Sends a signal to the process, not to those that it has started: they are its own."""
        if self.told_at is None:
            self.told_at = time.monotonic()
        self.process.send_signal(signum)
        self.process.send_signal(signal.SIGCONT)  # one that is stopped would not hear it

    def clear(self) -> None:
        """Kills what an ended process has left running in its session."""
        self.is_cleared = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def trouble_at(self, tail: Sequence[Line]) -> float:
        """When it began to fail: at the traceback that it has printed, or at its end."""
        ended_at = self.ended_at or 0.0
        times = [
            line.time
            for line in tail
            if line.text.startswith(_TRACEBACK) and ended_at - line.time < _TRACEBACK_SECONDS
        ]
        return min([ended_at, *times])

    def order_of_failure(self, tail: Sequence[Line]) -> Tuple[bool, float]:
        """Sorts a process that has missed another one after those that failed otherwise."""
        return _names_another(tail), self.trouble_at(tail)

    def failed_by_itself(self, tail: Sequence[Line]) -> bool:
        """Whether it began to fail before it was told to end."""
        return self.told_at is None or self.trouble_at(tail) < self.told_at

    def describe(self) -> str:
        if self.code > 128:
            with suppress(ValueError):
                name = signal.Signals(self.code - 128).name
                return f"{self.name} ({self.cluster.address}) was ended by {name}"
        return f"{self.name} ({self.cluster.address}) exited with code {self.code}"


def _names_another(tail: Sequence[Line]) -> bool:
    """Whether a process has ended because it missed another one."""
    return any(_LOST.match(line.text) for line in tail)
