"""Where log lines go: the console and the file `log.log`, neither of which can end a run."""

import logging
import os
import sys
from contextlib import contextmanager, suppress
from typing import Any, Iterator, Optional

from tqdm import tqdm

from ._directory_lock import DirectoryLock
from ._streams import can_write, is_terminal, point_at_devnull, same_screen

__all__ = ["ConsoleHandler", "LineFormatter", "LogFileHandler"]

_MARKS = {
    logging.DEBUG: "DBG",
    logging.WARNING: "WRN",
    logging.ERROR: "ERR",
    logging.CRITICAL: "ERR",
}
_GREEN, _YELLOW, _RED, _RED_UNDERLINED = "\033[32m", "\033[33m", "\033[1;31m", "\033[1;4;31m"
_MARK_COLOURS = {"DBG": _YELLOW, "WRN": _RED, "ERR": _RED_UNDERLINED}
_RESET = "\033[0m"


class LineFormatter(logging.Formatter):
    """Formats records as `[0724 10:43:13 @DQN.py:156] WRN text`; INFO has no mark."""

    def __init__(self, coloured: bool):
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._coloured = coloured

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Returns the line of a record, without a traceback."""
        time = self.formatTime(record, self.datefmt)
        words = [self._paint(_GREEN, f"[{time} @{record.filename}:{record.lineno}]")]
        mark = _MARKS.get(record.levelno)
        if mark:
            words.append(self._paint(_MARK_COLOURS[mark], mark))
        return " ".join(words + [record.message])

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self._coloured else text


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
            self._report(error)

    def _report(self, error: Exception) -> None:
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
        self._plain = LineFormatter(coloured=False)
        self._coloured = LineFormatter(coloured=True)
        self._dropped = 0

    def format(self, record: logging.LogRecord) -> str:
        """Returns the text of a record for the present standard output."""
        coloured = is_terminal(sys.stdout) and "NO_COLOR" not in os.environ
        return (self._coloured if coloured else self._plain).format(record)

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
                _write_encodable(stream, line)
            except BrokenPipeError:
                point_at_devnull(stream)
                raise


class LogFileHandler(_SinkHandler):
    """Writes plain text (no colour) to a new file, line by line.

    Args:
      path: of the file.
      lock: on its directory; released when the file is closed.

    Raises:
      OSError: if the file exists or cannot be created; it names the path.
    """

    def __init__(self, path: str, lock: Optional[DirectoryLock] = None):
        super().__init__()
        self.sink = path
        self._lock = lock
        self.setFormatter(LineFormatter(coloured=False))
        self._file = open(path, "x", buffering=1, encoding="utf-8", errors="backslashreplace")

    def write(self, line: str) -> None:
        """Writes one line to the file."""
        self._file.write(line)

    def close(self) -> None:
        """Closes the file; what could not be written (full disk) is given up."""
        with suppress(OSError):
            self._file.close()
        if self._lock is not None:
            self._lock.release()
        super().close()


def _write_encodable(stream: Any, line: str) -> None:
    try:
        stream.write(line)
    except UnicodeEncodeError:
        stream.write(line.encode("ascii", "backslashreplace").decode("ascii"))
    stream.flush()


@contextmanager
def _bars_aside(stream: Any) -> Iterator[None]:
    # The lock of tqdm is taken only where there is a bar: it is one more thing to fork with.
    bars = getattr(tqdm, "_instances", ())
    if len(bars) and same_screen(stream, sys.stderr):
        with tqdm.external_write_mode(file=stream):
            yield
    else:
        yield
