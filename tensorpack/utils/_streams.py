"""Output streams that may break in the middle of a run without ending it."""

import os
from contextlib import suppress
from typing import Any, TextIO

__all__ = ["ForgivingStream", "is_terminal", "point_at_devnull", "same_screen"]


def is_terminal(stream: Any) -> bool:
    """Tells whether a stream is a terminal; a missing or closed one is not."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


def same_screen(first: Any, second: Any) -> bool:
    """Tells whether what is written to two streams ends up interleaved in one place."""
    if is_terminal(first) and is_terminal(second):
        return True
    try:
        return os.path.sameopenfile(first.fileno(), second.fileno())
    except (AttributeError, ValueError, OSError):
        return False


def point_at_devnull(stream: Any) -> None:
    """Redirects the descriptor of a broken pipe to the null device.

    Otherwise anything that the program still prints fails when the interpreter exits and flushes
    it, which turns the exit code into 120. A stream without a descriptor is left alone.
    """
    with suppress(AttributeError, ValueError, OSError):
        target = stream.fileno()
        devnull = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(devnull, target)
        finally:
            os.close(devnull)


class ForgivingStream:
    """Passes text to a stream, and drops it once the stream cannot take any.

    Equal to the stream it wraps, so that tqdm still recognises standard error.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes text, or drops it; returns the number of characters in it."""
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream as far as it can be flushed."""
        self._attempt(self._stream.flush)

    def _attempt(self, operation: Any, *args: str) -> None:
        try:
            operation(*args)
        except BrokenPipeError:
            point_at_devnull(self._stream)
        except (OSError, ValueError):  # a full disk, a terminal gone away, a closed file
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __eq__(self, other: object) -> bool:
        return self._stream == getattr(other, "_stream", other)

    def __hash__(self) -> int:
        return hash(self._stream)
