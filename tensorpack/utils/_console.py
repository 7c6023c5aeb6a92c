"""Where output goes: the console and the file `log.log`. A stream that breaks, blocks or is missing
neither ends nor holds up a run.
"""

import logging
import os
import select
import sys
from contextlib import nullcontext, suppress
from typing import Any, Callable, ContextManager, Optional, TextIO

from tqdm import tqdm

from ._directory_lock import DirectoryLock

_PATIENCE_SECONDS = 2.0  # for a reader that does not read
_GREEN, _YELLOW, _RED, _RED_UNDERLINED = "\033[32m", "\033[33m", "\033[1;31m", "\033[1;4;31m"
_RESET = "\033[0m"
_MARKS = {
    logging.DEBUG: (_YELLOW, "DBG"),
    logging.WARNING: (_RED, "WRN"),
    logging.ERROR: (_RED_UNDERLINED, "ERR"),
    logging.CRITICAL: (_RED_UNDERLINED, "ERR"),
}


def is_terminal(stream: Any) -> bool:
    """Tells whether a stream is a terminal; a missing or closed one is not."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


def takes_colours(stream: Any) -> bool:
    """Tells whether a stream is a terminal with colours, and the user has nothing against them."""
    wanted = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return wanted and is_terminal(stream)


def is_notebook(stream: Any) -> bool:
    """Tells whether a stream is that of a Jupyter kernel, which is shown below a cell."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"


def same_screen(first: Any, second: Any) -> bool:
    """Tells whether what is written to two streams ends up interleaved in one place."""
    if any(on_screen(first) and on_screen(second) for on_screen in (is_terminal, is_notebook)):
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
    """Whether a stream takes some text now or soon; one without a descriptor takes everything.

    False if its reader has stopped reading: a paused pager or terminal, a stalled connection. If
    that was so before (`stalled`), the reader is not waited for.
    """
    poll = select.poll()
    try:
        poll.register(stream.fileno(), select.POLLOUT)
    except (AttributeError, ValueError, OSError):
        return True
    return bool(poll.poll(0 if stalled else 1000 * _PATIENCE_SECONDS))


class ForgivingStream:
    """Passes text to a stream, if there is one, and drops what it does not take in time.

    Equal to the stream it wraps, so that tqdm still recognises standard error.
    """

    def __init__(self, stream: Optional[TextIO]):
        self._stream = stream
        self._stalled = False

    def write(self, text: str) -> int:
        """Writes text, or drops it; returns its length in any case."""
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


class LineFormatter(logging.Formatter):
    """Formats records as `[0724 10:43:13 @DQN.py:156] WRN text`; INFO has no mark."""

    def __init__(self, coloured: Callable[[], bool]):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._coloured = coloured

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Returns the line of a record, without a traceback."""
        time = self.formatTime(record, self.datefmt)
        words = [(_GREEN, f"[{time} @{record.filename}:{record.lineno}]")]
        if record.levelno in _MARKS:
            words.append(_MARKS[record.levelno])
        coloured = self._coloured()
        shown = [f"{colour}{text}{_RESET}" if coloured else text for colour, text in words]
        return " ".join([*shown, record.message])


class _SinkHandler(logging.Handler):
    """Writes lines to one sink; a sink that fails is reported once and never raises."""

    sink = "the log"

    def __init__(self) -> None:
        super().__init__()
        self._reported = False

    def write(self, line: str) -> None:
        """Writes one line; may raise OSError or ValueError (closed)."""
        raise NotImplementedError

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record; what goes wrong is reported on standard error."""
        try:
            line = self.format(record) + "\n"
        except Exception:  # logging's own convention: a bad format string ends no program
            self.handleError(record)
            return
        try:
            self.write(line)
        except (OSError, ValueError) as error:
            if self._reported:
                return
            self._reported = True
            with suppress(AttributeError, OSError, ValueError):
                sys.stderr.write(
                    f"tensorpack cannot write to {self.sink} ({error!r}): lines are lost from here "
                    "on, the program continues.\n"
                )


class ConsoleHandler(_SinkHandler):
    """Writes to whatever `sys.stdout` is at that moment, in colour on a terminal.

    A progress bar that shares the screen is taken away for the time of the line. Lines are dropped
    while the reader of standard output does not read, and counted in the next line that is shown.
    """

    sink = "standard output"

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter(lambda: takes_colours(sys.stdout)))
        self._dropped = 0

    def write(self, line: str) -> None:
        """Writes one line to standard output."""
        stream = sys.stdout
        if stream is None:  # a process without a console
            return
        if not can_write(stream, stalled=self._dropped > 0):
            self._dropped += 1
            return
        if self._dropped:
            line = f"({self._dropped} lines were not shown: nothing read them.)\n{line}"
            self._dropped = 0
        with _bars_aside(stream):
            try:
                try:
                    stream.write(line)
                except UnicodeEncodeError:
                    stream.write(line.encode("ascii", "backslashreplace").decode("ascii"))
                getattr(stream, "flush", bool)()  # as logging does
            except BrokenPipeError:
                point_at_devnull(stream)
                raise


class LogFileHandler(_SinkHandler):
    """Writes plain text (no colour) to a new file, line by line.

    The lock, of its directory, is released when the file is closed.
    """

    def __init__(self, path: str, lock: DirectoryLock):
        super().__init__()
        self.sink = path
        self._lock = lock
        self.setFormatter(LineFormatter(lambda: False))
        self._file = open(path, "x", buffering=1, encoding="utf-8", errors="backslashreplace")

    def write(self, line: str) -> None:
        """Writes one line to the file."""
        self._file.write(line)

    def close(self) -> None:
        """Closes the file; what could not be written (full disk) is given up."""
        with suppress(OSError):
            self._file.close()
        self._lock.release()
        super().close()


def _bars_aside(stream: Any) -> ContextManager[None]:
    # The lock of tqdm is taken only where there is a bar: it is one more thing to fork with.
    if len(getattr(tqdm, "_instances", ())) and same_screen(stream, sys.stderr):
        return tqdm.external_write_mode(file=stream)
    return nullcontext()
