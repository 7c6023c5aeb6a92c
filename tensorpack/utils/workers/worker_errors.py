"""The exceptions that say how a worker process ended, and their format between processes."""

import builtins
import json
import signal
import sys
import traceback
from typing import Any, Dict, List, Optional

from .._tracebacks import add_note, notes_of
from ..stopping import Interrupted, StopToken

_MOST_CHARACTERS = 20000  # of a traceback; together with the rest it fits into a pipe
_MOST_CHARACTERS_OF_MESSAGE = 2000
_MOST_NOTES = 3
_UNBEGUN = (
    " It could not start; the cause of this error, or standard error, says why. The usual reason: "
    "a worker that is not forked imports the program's script again. Put what the script does "
    "below `if __name__ == '__main__':`, and functions that workers call above it, at the top of a "
    "file that can be imported (not standard input or a notebook). Or fork the worker: start "
    "it before other threads and a TensorFlow session exist (a dataflow by start_processes()), or "
    "pass start_method='fork'."
)
_IMPORTED = (
    "The worker is a new process, not a fork of this one: what the program did below "
    "`if __name__ == '__main__':`, such as filling a configuration, it lacks. Give the flow what "
    "it needs as arguments. Or fork the worker: start it before other threads and a TensorFlow "
    "session exist (reset_state() of the flow does), or pass start_method='fork'."
)
# What multiprocessing calls the program's script where a new process has imported it; elsewhere it
# may be another name of `__main__`.
_SCRIPT = "__mp_main__"
LEFT = 128 + signal.SIGTERM  # the exit code of workers that were told to leave
_GROUP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GROUP_SECONDS = 0.5
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT")


class WorkerDied(RuntimeError):
    """A worker ended without being told to, and could not report why.

    Args:
      name, pid: of the process.
      exitcode: as `multiprocessing` gives it: -n if signal n killed it.
      stack: Python stacks of its threads at the end, if they are known.
      begun: whether it had started its work.
    """

    def __init__(
        self, name: str, pid: int, exitcode: int, stack: str = "", begun: bool = True
    ) -> None:
        what = f"Worker {name!r} (pid {pid}) {_how(exitcode)}"
        if not begun and _signal_of(exitcode) is None:
            what += _UNBEGUN
        super().__init__(what + (f"\nIts stacks at the end:\n{stack}" if stack else ""))
        self.name = name
        self.pid = pid
        self.exitcode = exitcode

    @property
    def signum(self) -> Optional[int]:
        """The signal that ended it, or None."""
        return _signal_of(self.exitcode)


def is_end_of_group(error: BaseException, token: StopToken) -> bool:
    """Whether a worker has died of a signal to the whole process group, by which the run of `token`
    ends as well; it may hear the signal a little later, which this waits for.
    """
    if not isinstance(error, WorkerDied) or error.signum not in _GROUP_SIGNALS:
        return False
    token.wait(_GROUP_SECONDS)
    return isinstance(token.reason, Interrupted)


class WorkerFailed(RuntimeError):
    """An exception ended a worker; its traceback is the cause of this one."""


class WorkerTraceback(Exception):
    """The traceback of a worker, as text; the cause of the exception that stands for it here."""


def failure_to_bytes(error: BaseException) -> bytes:
    """What a worker tells about its exception: one line of JSON, then the traceback as text."""
    message, kind = _text_of(error), type(error)
    notes = [note[:_MOST_CHARACTERS_OF_MESSAGE] for note in notes_of(error)[:_MOST_NOTES]]
    imported = getattr(sys.modules.get(_SCRIPT), "__name__", None) == _SCRIPT
    if imported and isinstance(error, (KeyError, NameError, AttributeError)):
        notes.append(_IMPORTED)
    header = {
        "module": kind.__module__,
        "type": kind.__qualname__,
        "message": message[:_MOST_CHARACTERS_OF_MESSAGE],
        "args": _plain_args(error),
        "notes": notes,
    }
    text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    if len(text) > _MOST_CHARACTERS:
        text = "...\n" + text[-_MOST_CHARACTERS:]
    return (json.dumps(header) + "\n" + text).encode("utf-8", "backslashreplace")


def failure_from_bytes(data: bytes, name: str, pid: int) -> Optional[Exception]:
    """The exception to raise for what a worker told; None if there is nothing to understand.

    It has the worker's type if that is a builtin exception, and is a `WorkerFailed` otherwise;
    nothing is unpickled and no code of the worker's is looked up. `data` may be cut off in the
    traceback. Of a `sys.exit` only the traceback is returned: the exit code says the rest.
    """
    first, _, text = data.decode("utf-8", "replace").partition("\n")
    try:
        header = json.loads(first)
    except ValueError:
        return None
    cause = WorkerTraceback(f"in worker {name!r} (pid {pid})\n{text.rstrip()}")
    if header["type"] == "SystemExit":
        return cause
    error = _builtin_error(header)
    if error is None:
        kind = header["type"]
        if header["module"] not in ("builtins", "__main__", _SCRIPT):
            kind = f"{header['module']}.{kind}"
        what = f"{kind}: {header['message']}" if header["message"] else kind
        error = WorkerFailed(f"Worker {name!r} (pid {pid}) failed with {what}")
    error.__cause__ = cause
    for note in header.get("notes", []):
        add_note(error, note)
    return error


def _builtin_error(header: Dict[str, Any]) -> Optional[Exception]:
    """The worker's exception made again, if that shows the same text; or None."""
    kind = getattr(builtins, header["type"], None) if header["module"] == "builtins" else None
    # StopIteration would end a loop or a generator on its way.
    if not isinstance(kind, type) or not issubclass(kind, Exception) or kind is StopIteration:
        return None
    for args in (header["args"], [header["message"]]):
        try:
            error = kind(*args)
        except TypeError:  # it wants other arguments
            continue
        if str(error) == header["message"]:
            return error
    return None


def _plain_args(error: BaseException) -> List[Any]:
    """The arguments of an exception if they are few, short and plain; else none."""
    plain = len(error.args) <= 4 and all(
        each is None or type(each) in (bool, int, float, str) and len(str(each)) < 500
        for each in error.args
    )
    return list(error.args) if plain else []


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its __str__ is broken, too; the traceback tells where it came from
        return "<no text: its __str__ fails>"


def _signal_of(exitcode: int) -> Optional[int]:
    if exitcode == LEFT:
        return int(signal.SIGTERM)
    return -exitcode if exitcode < 0 else None


def _how(exitcode: int) -> str:
    signum = _signal_of(exitcode)
    if signum is None:
        if exitcode == 0:
            return "ended in order, but it is needed until the end of the run."
        return f"ended with exit code {exitcode}."
    try:
        name = signal.Signals(signum).name
    except ValueError:  # a real-time signal
        name = f"signal {signum}"
    how = f"was killed by {name} (signal {signum})."
    if name == "SIGKILL":
        return how + " If the machine ran out of memory, dmesg says so."
    if name in _CRASHES:
        return how + " It crashed in C code."
    return how + " This run did not send it."
