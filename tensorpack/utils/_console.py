"""Where output goes: the console and the file `log.log`.

A stream that breaks or is missing does not end a run. A reader that stops reading is waited for.
"""

import logging
import os
import sys
from contextlib import nullcontext, suppress
from typing import Any, Callable, ContextManager, Optional, TextIO

from tqdm import tqdm

from ._directory_lock import DirectoryLock

_GREEN, _YELLOW, _RED, _RED_UNDERLINED = "\033[32m", "\033[33m", "\033[1;31m", "\033[1;4;31m"
_RESET = "\033[0m"
_MARKS = {
    logging.DEBUG: (_YELLOW, "DBG"),
    logging.WARNING: (_RED, "WRN"),
    logging.ERROR: (_RED_UNDERLINED, "ERR"),
    logging.CRITICAL: (_RED_UNDERLINED, "ERR"),
}


def is_terminal(stream: Any) -> bool:
    """Returns whether a stream is a terminal; a missing or closed one is not."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


def takes_colours(stream: Any) -> bool:
    """Returns whether a stream is a terminal with colours that the user has not turned off."""
    wanted = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return wanted and is_terminal(stream)


def is_notebook(stream: Any) -> bool:
    """Returns whether a stream is that of a Jupyter kernel, which is shown below a cell."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"


def same_screen(first: Any, second: Any) -> bool:
    """Returns whether what is written to two streams ends up interleaved in one place."""
    if any(on_screen(first) and on_screen(second) for on_screen in (is_terminal, is_notebook)):
        return True
    try:
        return os.path.sameopenfile(first.fileno(), second.fileno())
    except (AttributeError, ValueError, OSError):
        return False


def point_at_devnull(stream: Any) -> None:
    """Redirects the descriptor of a broken pipe to the null device, so that the interpreter, which
    flushes it when it exits, does not fail. A stream without a descriptor is left alone.
    """
    with suppress(AttributeError, ValueError, OSError), open(os.devnull, "wb") as devnull:
        os.dup2(devnull.fileno(), stream.fileno())


def open_standard_descriptors() -> None:
    """Opens those of the descriptors 0 to 2 that are closed, on the null device.

    Otherwise files and sockets of the run would get these numbers, and whatever C code writes to
    standard error would end up in them. Called where a run begins.
    """
    descriptor = 0
    while descriptor <= 2:  # the lowest free number is taken each time
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)


class ForgivingStream:
    """Passes text to a stream, if there is one, and drops what it cannot write.

    Equal to the stream it wraps, so that tqdm still recognises standard error.
    """

    def __init__(self, stream: Optional[TextIO]):
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes text, or drops it; returns its length in any case."""
        self._call("write", text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream as far as it can be flushed."""
        self._call("flush")

    def _call(self, method: str, *args: str) -> None:
        if self._stream is not None:
            try:
                getattr(self._stream, method)(*args)
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
        words += [_MARKS[record.levelno]] if record.levelno in _MARKS else []
        coloured = self._coloured()
        shown = [f"{colour}{text}{_RESET}" if coloured else text for colour, text in words]
        return " ".join([*shown, record.message])


class _Handler(logging.StreamHandler):
    """Writes lines to a stream; one that fails is reported once on standard error."""

    sink: str
    _reported = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Reports the exception being handled; a wrong format string as `logging` does."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError) and not getattr(self.stream, "closed", False):
            super().handleError(record)
            return
        if isinstance(error, BrokenPipeError):
            point_at_devnull(self.stream)
        if not self._reported:
            self._reported = True
            ForgivingStream(sys.stderr).write(
                f"tensorpack cannot write to {self.sink} ({error!r}): lines are lost from here "
                "on, the program continues.\n"
            )


class ConsoleHandler(_Handler):
    """Writes to whatever `sys.stdout` is at that moment, in colour on a terminal.

    A progress bar that shares the screen is taken away for the time of the line.
    """

    sink = "standard output"

    def __init__(self) -> None:
        super().__init__(sys.stdout)
        self.setFormatter(LineFormatter(lambda: takes_colours(sys.stdout)))

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record, with escapes for what the console cannot show."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        return super().format(record).encode(encoding, "backslashreplace").decode(encoding)

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record, where the process has a standard output."""
        self.stream = sys.stdout
        if self.stream is not None:
            with _bars_aside(self.stream):
                super().emit(record)


class LogFileHandler(_Handler):
    """Writes plain text (no colour) to a new file, line by line.

    The lock, of its directory, is released when the file is closed.
    """

    def __init__(self, path: str, lock: DirectoryLock):
        self.sink, self._lock = path, lock
        super().__init__(open(path, "x", encoding="utf-8", errors="backslashreplace"))
        self.setFormatter(LineFormatter(lambda: False))

    def close(self) -> None:
        """Closes the file; what could not be written (full disk) is given up."""
        with suppress(OSError):
            self.stream.close()
        self._lock.release()
        super().close()


def _bars_aside(stream: Any) -> ContextManager[None]:
    # The lock of tqdm is taken only where there is a bar: it is one more thing to fork with.
    if len(getattr(tqdm, "_instances", ())) and same_screen(stream, sys.stderr):
        return tqdm.external_write_mode(file=stream)
    return nullcontext()
