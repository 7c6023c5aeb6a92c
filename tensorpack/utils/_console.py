"""Where output goes: the console and the file `log.log`.

A stream that breaks or is missing does not end a run. A reader that stops reading is waited for.
"""

import logging
import os
import sys
from contextlib import suppress
from typing import Any, Optional, TextIO

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
    with suppress(AttributeError, ValueError, OSError):
        return bool(stream.isatty())
    return False


def is_notebook(stream: Any) -> bool:
    """Returns whether a stream is that of a Jupyter kernel, which is shown below a cell."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"


def same_screen(first: Any, second: Any) -> bool:
    """Returns whether what is written to two streams ends up interleaved in one place."""
    if any(on_screen(first) and on_screen(second) for on_screen in (is_terminal, is_notebook)):
        return True
    with suppress(AttributeError, ValueError, OSError):
        return os.path.sameopenfile(first.fileno(), second.fileno())
    return False


def point_at_devnull(stream: Any) -> None:
    """Redirects the descriptor of a broken pipe to the null device, so that the interpreter, which
    flushes it when it exits, does not fail. A stream without a descriptor is left alone.
    """
    with suppress(AttributeError, ValueError, OSError), open(os.devnull, "wb") as devnull:
        os.dup2(devnull.fileno(), stream.fileno())


def open_standard_descriptors() -> None:
    """Opens those of the descriptors 0 to 2 that are closed, on the null device.

    Otherwise files and sockets of the run would get these numbers, and what C code writes to
    standard error would end up in them. Called where a run begins.
    """
    descriptor = 0
    while descriptor <= 2:  # the lowest free number is taken each time
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)


class ForgivingStream:
    """Passes text to a stream, if there is one, and drops what it cannot write; the first time it
    says so on standard error, if it has a name.

    Equal to the stream it wraps, so that tqdm still recognises standard error.
    """

    def __init__(self, stream: Optional[TextIO], name: str = ""):
        self.stream, self._name = stream, name

    def write(self, text: str) -> int:
        self._call("write", text)
        return len(text)

    def flush(self) -> None:
        self._call("flush")

    def _call(self, method: str, *args: str) -> None:
        try:
            getattr(self.stream, method, lambda *_: None)(*args)
        except (OSError, ValueError) as error:  # a full disk, a terminal gone away, a closed file
            if isinstance(error, BrokenPipeError):
                point_at_devnull(self.stream)
            name, self._name = self._name, ""
            if name and not getattr(self.stream, "closed", False):
                text = f"tensorpack cannot write to {name} ({error!r}): lines are lost from here on"
                ForgivingStream(sys.stderr).write(f"{text}, the program continues.\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __eq__(self, other: object) -> bool:
        return self.stream == getattr(other, "stream", other)


class LineFormatter(logging.Formatter):
    """Formats records as `[0724 10:43:13 @DQN.py:156] WRN text`; INFO has no mark.

    `console` is whether they go to standard output, and have colours where that takes them.
    """

    def __init__(self, console: bool):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._console = console

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Returns the line of a record, without a traceback."""
        time = self.formatTime(record, self.datefmt)
        place = f"[{time} @{record.filename}:{record.lineno}]"
        colour, mark = _MARKS.get(record.levelno, ("", ""))
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        if self._console and not plain and is_terminal(sys.stdout):
            place, mark = f"{_GREEN}{place}{_RESET}", mark and f"{colour}{mark}{_RESET}"
        return " ".join(filter(None, [place, mark, record.message]))


class ConsoleHandler(logging.StreamHandler):
    """Writes to whatever `sys.stdout` is at that moment, in colour on a terminal.

    A progress bar that shares the screen is taken away for the time of the line.
    """

    stream: Any

    def __init__(self) -> None:
        super().__init__(ForgivingStream(sys.stdout, "standard output"))
        self.setFormatter(LineFormatter(console=True))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        self.stream.stream = sys.stdout
        # The lock of tqdm is taken only where there is a bar: it is one more thing to fork with.
        if len(getattr(tqdm, "_instances", ())) and same_screen(sys.stdout, sys.stderr):
            with tqdm.external_write_mode(file=sys.stdout):
                super().emit(record)
        else:
            super().emit(record)


class LogFileHandler(logging.StreamHandler):
    """Writes plain text (no colour) to a new file in a directory, line by line.

    The lock, of the directory, is released when the file is closed.
    """

    stream: Any

    def __init__(self, directory: str, name: str, lock: DirectoryLock):
        self.directory, self._lock = directory, lock
        path = os.path.join(directory, name)
        file = open(path, "x", encoding="utf-8", errors="backslashreplace")
        super().__init__(ForgivingStream(file, path))
        self.setFormatter(LineFormatter(console=False))

    def close(self) -> None:
        """Closes the file; what could not be written (full disk) is given up."""
        with suppress(OSError, AttributeError):  # it was closed before
            self.stream.close()
        self.stream.stream = None
        self._lock.release()
        super().close()
