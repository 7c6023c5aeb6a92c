"""Notes of exceptions (PEP 678), for all versions of Python.

A note is printed below its exception. Before Python 3.11 it is a cause, which is printed above:
that of the exception, or of the first of its causes.
"""

from typing import Iterator, List


class Note(Exception):
    """The text of a note, in Python 3.10 and before."""


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


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields an exception and what is printed above it, the nearest one first."""
    while True:
        yield error
        above = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if above is None:
            return
        error = above
