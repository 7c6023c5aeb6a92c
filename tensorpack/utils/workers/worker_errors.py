"""The exceptions that say how a worker process ended, and how they travel between processes."""

import io
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

from .._tracebacks import add_note, notes_of
from ..stopping import Interrupted, StopToken

# A report fits into a pipe, of 64 KiB.
_MOST_BYTES = 30000  # of a pickled exception
_MOST_CHARACTERS = 20000  # of a traceback
_MOST_CHARACTERS_OF_MESSAGE = 2000
_NEW_PROCESS = (
    "The worker is a new process, not a fork of this one, and imports the program's script again. "
    "Put what the script does below `if __name__ == '__main__':`, and functions that workers call "
    "above it, in a file that can be imported (not standard input or a notebook). What is done "
    "below that line, such as filling a configuration, the worker lacks: pass it as arguments. Or "
    "fork the worker: start it before other threads and a TensorFlow session exist (a dataflow by "
    "start_processes()), or pass start_method='fork'."
)
# What multiprocessing calls the program's script where a new process has imported it; elsewhere it
# may be another name of `__main__`.
_SCRIPT = "__mp_main__"
LEFT = 128 + signal.SIGTERM  # the exit code of workers that were told to leave
_SIGNALS = {signum.value: signum.name for signum in signal.Signals}
_GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GROUP_SECONDS = 0.5


class WorkerDied(RuntimeError):
    """A worker ended without being told to, and could not report why.

    It has the name, pid and exit code (-n if signal n killed it) that `multiprocessing` gives, and
    `signum`, the signal that ended it, or None.
    """

    def __init__(
        self, name: str, pid: int, exitcode: int, stack: str = "", begun: bool = True
    ) -> None:
        signum = -exitcode if exitcode < 0 else int(signal.SIGTERM) if exitcode == LEFT else None
        if signum is not None:
            how = f"was killed by {_SIGNALS.get(signum, 'a signal')} (signal {signum})."
            if signum == signal.SIGKILL:
                how += " If the machine ran out of memory, dmesg says so."
        elif exitcode == 0:
            how = "ended in order, but it is needed until the end of the run."
        else:
            how = f"ended with exit code {exitcode}."
            if not begun:
                how += f" It could not start; standard error says why. {_NEW_PROCESS}"
        stack = f"\nIts stacks at the end:\n{stack.strip()}" if stack else ""
        super().__init__(f"Worker {name!r} (pid {pid}) {how}{stack}")
        self.name, self.pid, self.exitcode, self.signum = name, pid, exitcode, signum


class WorkerFailed(RuntimeError):
    """An exception that cannot be pickled ended a worker; its traceback is the cause of this."""


class WorkerTraceback(Exception):
    """The traceback of a worker, as text; the cause of the exception that is raised here."""


def is_end_of_group(error: BaseException, token: StopToken) -> bool:
    """Whether a worker has died of a signal to the whole process group, by which the run of `token`
    ends as well, perhaps a little later.
    """
    if not isinstance(error, WorkerDied) or error.signum not in _GROUP_SIGNALS:
        return False
    token.wait(_GROUP_SECONDS)
    return isinstance(token.reason, Interrupted)


def failure_to_bytes(error: BaseException) -> bytes:
    """What a worker reports of its exception: a pickle, and then its traceback as text."""
    imported = getattr(sys.modules.get(_SCRIPT), "__name__", None) == _SCRIPT
    missing = isinstance(error, (KeyError, NameError, AttributeError))
    if missing and (imported or "module '__main__'" in str(error)):
        add_note(error, _NEW_PROCESS)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    pickled = b""
    with suppress(Exception):  # the text says what it was
        pickled = pickle.dumps(error)
    report = (_text_of(error), notes_of(error), pickled if len(pickled) < _MOST_BYTES else b"")
    return pickle.dumps(report) + text[-_MOST_CHARACTERS:].encode("utf-8", "backslashreplace")


def failure_from_bytes(data: bytes, name: str, pid: int) -> Exception:
    """The exception to raise for what a worker reported, whose traceback may be cut off; a
    `WorkerFailed` if its own does not come back from its pickle as it was.
    """
    stream = io.BytesIO(data)
    text, notes, pickled = pickle.load(stream)
    error: Any = None
    with suppress(Exception):  # it cannot be made again, or its class is not known here
        error = pickle.loads(pickled)
    is_same = isinstance(error, Exception) and _text_of(error) == text
    if not is_same or isinstance(error, StopIteration):  # which would end a loop on its way
        error = WorkerFailed(f"Worker {name!r} (pid {pid}) failed with {text}")
    trace = stream.read().decode("utf-8", "replace").rstrip()
    error.__cause__ = WorkerTraceback(f"in worker {name!r} (pid {pid})\n{trace}")
    for note in notes[len(notes_of(error)) :]:
        add_note(error, note)
    return error


def _text_of(error: BaseException) -> str:
    """The type and message, also where `__str__` is broken."""
    text = traceback.format_exception_only(type(error), error)[0].rstrip()
    return text.replace(f"{_SCRIPT}.", "", 1)[:_MOST_CHARACTERS_OF_MESSAGE]
