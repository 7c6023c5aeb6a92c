"""Notes of exceptions for all versions of Python, and which source files are the user's own."""

import os
import re
from typing import Iterator, List, Optional, Set

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
_TENSORFLOW = re.compile(
    r"[/\\](site|dist)-packages[/\\](tensorflow|tensorflow_core|tensorflow_estimator|keras|absl)[/\\]"
)


def is_of_user(path: str) -> bool:
    """Returns whether a source file is neither of this package, nor of TensorFlow, nor Python's."""
    if os.path.abspath(path).startswith(_OURS) or _TENSORFLOW.search(path):
        return False
    return bool(_INSTALLED.search(path)) or not path.startswith((_STDLIB, "<frozen "))


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
        return list(getattr(error, "__notes__", []))
    return [str(link) for link in _chain(error) if isinstance(link, Note)]


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields an exception and what is printed above it, the nearest one first."""
    seen: Set[int] = set()
    link: Optional[BaseException] = error  # `raise error from error` makes a circle
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
