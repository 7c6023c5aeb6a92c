"""Output streams that may break, block or be missing without ending or holding up a run."""

import os
import select
from contextlib import suppress
from typing import Any, Optional, TextIO

__all__ = [
    "ForgivingStream",
    "can_write",
    "is_terminal",
    "open_standard_descriptors",
    "point_at_devnull",
    "same_screen",
]

_PATIENCE_SECONDS = 2.0  # for a reader that does not read


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


def open_standard_descriptors() -> None:
    """Opens those of the descriptors 0 to 2 that are closed, on the null device.

    Otherwise files and sockets of the run would get these numbers, and whatever C code writes to
    standard error would end up in them. Called where a run begins.
    """
    descriptor = 0
    while descriptor <= 2:  # the lowest free number is taken each time
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)


def can_write(stream: Any, stalled: bool = False) -> bool:
    """Whether a stream takes some text now or soon. False if its reader has stopped reading: a
    paused pager or terminal, a stalled connection.

    Args:
      stream: to write to; one without a descriptor takes everything.
      stalled: whether its reader had stopped before; then it is not waited for.
    """
    poll = select.poll()
    try:
        poll.register(stream.fileno(), select.POLLOUT)
    except (AttributeError, ValueError, OSError):
        return True
    return bool(poll.poll(0 if stalled else 1000 * _PATIENCE_SECONDS))


class ForgivingStream:
    """Passes text to a stream, and drops what the stream does not take.

    Drops everything if there is no stream, and what its reader does not read in time.

    Equal to the stream it wraps, so that tqdm still recognises standard error.
    """

    def __init__(self, stream: Optional[TextIO]):
        self._stream = stream
        self._stalled = False

    def write(self, text: str) -> int:
        """Writes text, or drops it; returns the number of characters in it."""
        self._attempt("write", text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream as far as it can be flushed."""
        self._attempt("flush")

    def _attempt(self, operation: str, *args: str) -> None:
        self._stalled = not can_write(self._stream, self._stalled)
        if self._stream is None or self._stalled:
            return
        try:
            getattr(self._stream, operation)(*args)
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
