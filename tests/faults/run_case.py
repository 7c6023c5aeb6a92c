"""Runs a case of the fault matrix in a child process, and checks what must hold after each.

It ends in time and leaves nothing behind; the exit code is true and one root cause is told; the
statistics only go forward. Checkpoints can be loaded, and all numbers in them are finite.
"""

import json
import os
import re
import signal
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, Tuple

import numpy as np
import pytest

from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.harness import NEVER, Child

QUICK_SECONDS = 10.0  # an end that may take no longer is timed with nothing beside it
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
CASES = "tests.faults.cases"
_SHARED_MEMORY = Path("/dev/shm")
_LABEL = "TENSORPACK_FAULT_CASE"
_GRACE_SECONDS = 10.0  # what other programs hold in shared memory goes, too
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("direct cause of the following", "another exception occurred")
_NOTE = "tensorpack.utils._tracebacks.Note: "  # a link without a traceback (before Python 3.11)


class Case(NamedTuple):
    """One run and what must come of it.

    Attributes:
      row: of the matrix.
      name: in `training.CASES`.
      code: the exit code.
      signals: what is sent once the child has printed the mark, 0.1 s apart.
      group: whether they go to the whole process group, as from a terminal.
      mark: what is waited for; by default the name.
      within: seconds from the last signal, or from the start, to the end.
      error: regular expression for the last line of the traceback; none is printed if empty.
      says: what must be in the output.
      never: what must not be in it.
      tolerates: words that no run prints, but this one may.
      fast: whether it belongs to the fast tier.
      one_row: whether CI runs it on one TensorFlow alone.
      module: whose `main` the child calls.
      enclosed: arguments of `enclosed.py`, if it is to be run through that.
      fresh: whether it needs an interpreter that has imported nothing.
    """

    row: int
    name: str
    code: int
    signals: Tuple[int, ...] = ()
    group: bool = False
    mark: str = ""
    within: float = 60.0
    error: str = ""
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ("PHASE done",)
    tolerates: Tuple[str, ...] = ()
    fast: bool = False
    one_row: bool = False
    module: str = CASES
    enclosed: Tuple[str, ...] = ()
    fresh: bool = False

    def __str__(self):
        sent = "-".join(signal.Signals(each).name for each in self.signals)
        how = ("-group" if self.group else "-pid") if sent else ""
        return f"row{self.row}-{self.name}" + ("-" + sent + how if sent else "")


def params(cases, *more):
    """The cases as parameters: with their row, whether the end must be quick, and their tier."""
    found = []
    for case in cases:
        marks = [pytest.mark.fault_row(case.row)] if case.row else []
        marks += [pytest.mark.timed] if case.within <= QUICK_SECONDS else []
        marks += [] if case.fast else [pytest.mark.slow]
        marks += [pytest.mark.one_row] if case.one_row else []
        found.append(pytest.param(case, marks=[*marks, *more], id=str(case)))
    return found


class Run:
    """A case in a child process; a context, which has no process of the case when it is left.

    Args:
      case: a `Case`.
      directory: for it alone; the log directory is in it.
      zygote: a copy of that runs the case, unless the case needs something else.
      action: what to do with a log directory that is there.
      env: added to the environment.
    """

    def __init__(self, case, directory, zygote, action="", env=None):
        self.case = case
        self.log = directory / "log"
        self.around = Surroundings(directory)
        args, env = (case.name, self.log, action), {**self.around.env, **(env or {})}
        if case.enclosed or case.fresh:
            through = ("-m", "tests.faults.enclosed", *case.enclosed) if case.enclosed else ()
            self.child = Child(*through, "-m", case.module, *args, env=env)
        else:
            self.child = Child(*args, env=env, zygote=zygote, module=case.module)
        self.around.session = self.child.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.child.end(timeout=0 if self.child.process.poll() is None else 60)

    def end(self):
        """Sends the signals of the case, waits for the end and checks all; returns the child."""
        begin = time.monotonic()
        if self.case.signals:
            self.child.wait_for(f"PHASE {self.case.mark or self.case.name}")
            for number, signum in enumerate(self.case.signals):
                time.sleep(0.1 if number else 0.0)
                self.child.send(signum, group=self.case.group)
            begin = time.monotonic()
        code = self.child.process.wait(max(60, self.case.within))
        took = time.monotonic() - begin
        self.child.end(timeout=60)
        output = self.child.output
        assert took < self.case.within, f"took {took:.1f} s:\n{output}"
        left = self.around.leftovers()
        assert not left, f"left behind {left}:\n{output}"
        check_truth(self.case, output, code)
        check_statistics(self.log)
        for index in self.log.glob("model-*.index"):
            variables = load_checkpoint_vars(str(index.with_suffix("")))
            assert variables and all(_is_finite(each) for each in variables.values()), variables
        return self.child


def _is_finite(value):
    return value.dtype.kind != "f" or np.isfinite(value).all()


def check_truth(case, output, code):
    """Checks the exit code and what was said."""
    assert code == case.code, f"exit code {code}:\n{output}"
    begun = output.count(_TRACEBACK) + output.count(_NOTE)
    reports = begun - sum(output.count(each) for each in _CHAINED)
    assert reports == (1 if case.error else 0), output
    if case.error:
        assert re.search(f"^(?:{case.error})", output, re.MULTILINE), output
    never = set(NEVER) - {"Traceback"} - set(case.tolerates)
    assert not [word for word in never if word in output], output
    assert "LEFT BEHIND" not in output
    missing = [each for each in case.says if each not in output]
    assert not missing, f"never said {missing}:\n{output}"
    wrong = [each for each in case.never if each in output]
    assert not wrong, f"said {wrong}:\n{output}"


def check_statistics(log):
    """Checks that epochs and steps of `stats.json`, if there is one, only go up."""
    path = log / "stats.json"
    if not path.exists():
        return
    epochs = json.loads(path.read_text())
    for key in ("epoch_num", "global_step"):
        values = [epoch[key] for epoch in epochs]
        assert values == sorted(set(values)), (key, values)


class Surroundings:
    """What is there before a child runs, and how its traces are recognised.

    Args:
      directory: for this child alone. Its folder for temporary files lies beside it, not in it:
        sockets are made there, whose paths have to be short.

    Attributes:
      session: the process id of the child, once it is known, if it leads a session.
    """

    session = None

    def __init__(self, directory):
        self._label = f"{os.getpid()}-{time.monotonic_ns()}"
        self._temporary = Path(tempfile.mkdtemp(prefix="t", dir=str(directory.parent)))
        self._shared = _shared_memory()
        self.env = {_LABEL: self._label, "TMPDIR": str(self._temporary)}

    def leftovers(self):
        """Sentences about what is there still, after a moment for what is about to go."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while True:
            found = [f"process {pid}: {_read(pid, 'cmdline')!r}" for pid in self.processes()]
            found += [f"temporary file {path}" for path in self._temporary.iterdir()]
            found += self._segments()
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def processes(self):
        """Process ids of the session of the child, and of those that have its environment."""
        label = f"{_LABEL}={self._label}".encode()
        pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
        return [
            pid
            for pid in pids
            if label in _read(pid, "environ") or self._is_in_session(_read(pid, "stat"))
        ]

    def _is_in_session(self, stat):
        fields = stat.rpartition(b")")[2].split()  # the state, the parent, the group, the session
        return bool(fields) and fields[0] != b"Z" and fields[3] == str(self.session).encode()

    def _segments(self):
        new = _shared_memory() - self._shared
        if not new:
            return []
        maps = b"".join(_read(path.name, "maps") for path in Path("/proc").glob("[0-9]*"))
        # what is mapped belongs to a process that lives, so not to the child
        return [f"shared memory {name}" for name in new if os.fsencode(name) not in maps]


def _shared_memory():
    """Names in shared memory, but for semaphores: they come and go with any other program."""
    names = os.listdir(str(_SHARED_MEMORY)) if _SHARED_MEMORY.is_dir() else []
    return {name for name in names if not name.startswith("sem.")}


def _read(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it ended meanwhile, or belongs to another user
        return b""
