"""Tracebacks as a user needs them: their own frames, without those of this package and TensorFlow,
and notes of exceptions for all versions of Python.

Nothing is taken from an exception: only what the interpreter prints of it at the end of a program
is shorter. `TENSORPACK_FULL_TRACEBACK=1` prints everything.
"""

import os
import re
import sys
import traceback
from types import TracebackType
from typing import Any, Iterator, List, Optional, Set, Type

SWITCH = "TENSORPACK_FULL_TRACEBACK"

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
_TENSORFLOW = re.compile(
    r"[/\\](site|dist)-packages[/\\](tensorflow|tensorflow_core|tensorflow_estimator|keras|absl)[/\\]"
)

_ONE_HIDDEN = f"  (1 frame of tensorpack and TensorFlow is not shown: {SWITCH}=1 shows it.)\n"
_HIDDEN = f"  ({{}} frames of tensorpack and TensorFlow are not shown: {SWITCH}=1 shows them.)\n"


def shorten_uncaught() -> None:
    """Has the interpreter print short tracebacks of exceptions that are not caught.

    A program with a hook of its own (a debugger, IPython) keeps that, and prints what it likes.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_short


def traceback_text(error: BaseException, full: bool = False) -> str:
    """Returns what is printed of an exception with its causes, its traceback and its notes.

    Frames of this package and of TensorFlow are shown if `full`, or if there are no others.
    """
    shown = traceback.TracebackException(type(error), error, error.__traceback__)
    chain = list(_all_of(shown))
    hidden = 0
    if not full and any(_frames_of_users(each.stack) for each in chain):
        hidden = sum(map(_hide_frames, chain))
    lines = list(shown.format())
    if hidden:
        message = list(shown.format_exception_only())  # what everybody looks for at the very end
        remark = _ONE_HIDDEN if hidden == 1 else _HIDDEN.format(hidden)
        lines.insert(len(lines) - len(message), remark)
    return "".join(lines)


def is_of_user(path: str) -> bool:
    """Returns whether a source file is neither of this package, nor of TensorFlow, nor Python's."""
    return not _is_hidden(path) and not _is_library(path)


class Note(Exception):
    """The text of a note (PEP 678) where Python has none, before 3.11: a cause, printed above."""


def add_note(error: BaseException, note: str) -> None:
    """Adds a text to what is printed of an exception; its type and message stay as they are."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        list(_chain(error))[-1].__cause__ = Note(note)


def notes_of(error: BaseException) -> List[str]:
    """Returns the texts that `add_note` has added to an exception."""
    if hasattr(error, "add_note"):
        notes = getattr(error, "__notes__", [])  # anything, if a program has set it itself
        return [each for each in notes if isinstance(each, str)] if isinstance(notes, list) else []
    return [str(each) for each in _chain(error) if isinstance(each, Note)]


def _print_short(
    kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
) -> None:
    try:
        full = os.environ.get(SWITCH, "") not in ("", "0")
        text = None if full or trace is None else traceback_text(error.with_traceback(trace))
    except Exception:  # whatever goes wrong here, the error itself is shown
        text = None
    if text is None:
        sys.__excepthook__(kind, error, trace)
    elif sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _all_of(top: Any, seen: Optional[Set[int]] = None) -> Iterator[Any]:
    """Yields a `TracebackException`, its causes and contexts, and the members of groups."""
    seen = set() if seen is None else seen
    if top is None or id(top) in seen:
        return
    seen.add(id(top))
    yield top
    for each in [top.__cause__, top.__context__, *(getattr(top, "exceptions", None) or [])]:
        yield from _all_of(each, seen)


def _hide_frames(shown: Any) -> int:
    """Takes the frames that are not the user's out of what is shown; returns how many.

    Where there are no others the last one stays: without any, no traceback is printed at all, which
    programs look for.
    """
    kept = _frames_of_users(shown.stack) or shown.stack[-1:]
    hidden = len(shown.stack) - len(kept)
    shown.stack[:] = kept
    return hidden


def _frames_of_users(stack: List[Any]) -> List[Any]:
    kept, hiding = [], False
    for frame in stack:
        if not _is_library(frame.filename):  # a helper, such as contextlib, is as its caller
            hiding = _is_hidden(frame.filename)
        if not hiding:
            kept.append(frame)
    return kept


def _is_hidden(path: str) -> bool:
    return os.path.abspath(path).startswith(_OURS) or bool(_TENSORFLOW.search(path))


def _is_library(path: str) -> bool:
    return path.startswith((_STDLIB, "<frozen ")) and not _INSTALLED.search(path)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields an exception and what is printed above it, the nearest one first."""
    seen: Set[int] = set()
    above: Optional[BaseException] = error  # `raise error from error` makes a circle
    while above is not None and id(above) not in seen:
        seen.add(id(above))
        yield above
        above = above.__cause__ or (None if above.__suppress_context__ else above.__context__)
